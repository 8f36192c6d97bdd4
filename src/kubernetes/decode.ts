import type { Endpoint, EndpointPort, EndpointSlice, SlicePage, WatchEvent } from "./slice-api.ts";

/** A Status, with which an API server says what went wrong (meta/v1). */
export interface Status {
  readonly code: number | undefined;
  readonly reason: string;
  readonly message: string;
}

export type WatchLine = WatchEvent | { readonly type: "ERROR"; readonly status: Status };

/** Reads the body of a list. Throws where it is none. */
export function pageOf(body: string): SlicePage {
  const list = recordOf(JSON.parse(body), "a list");
  const { resourceVersion, continue: next } = recordOf(list.metadata, "a list's metadata");
  const items = list.items ?? [];
  if (typeof resourceVersion !== "string" || !Array.isArray(items)) {
    throw new Error("a list has no resourceVersion or no items");
  }
  return {
    slices: items.map(sliceOf),
    resourceVersion,
    // Else what comes on further pages would be missing without a word.
    continueToken: textOrNull(next, "a list's continue") || undefined,
  };
}

/** Reads a line of a watch. Throws where it is none. */
export function eventOf(line: string): WatchLine {
  const { type, object } = recordOf(JSON.parse(line), "an event");
  switch (type) {
    case "ADDED":
    case "MODIFIED":
    case "DELETED":
      return { type, slice: sliceOf(object) };
    case "BOOKMARK": {
      const { metadata } = recordOf(object, "a bookmark");
      const { resourceVersion } = recordOf(metadata, "a bookmark's metadata");
      if (typeof resourceVersion !== "string") throw new Error("a bookmark has no resourceVersion");
      return { type, resourceVersion };
    }
    case "ERROR":
      return { type, status: statusOf(object) };
    default:
      throw new Error(`there is no such type of event: ${JSON.stringify(type)}`);
  }
}

/** Reads a Status; what is none says nothing. */
export function statusOf(value: unknown): Status {
  const { code, reason, message } = isRecord(value) ? value : {};
  return {
    code: typeof code === "number" ? code : undefined,
    reason: typeof reason === "string" ? reason : "",
    message: typeof message === "string" ? message : "",
  };
}

/**
 * Takes of a slice what is read here, so that the rest of it is not kept. Throws where something of
 * that is not of its type: the API server has checked it, but a server that is none may have sent it.
 */
function sliceOf(value: unknown): EndpointSlice {
  const slice = recordOf(value, "an EndpointSlice");
  const metadata = recordOf(slice.metadata, "an EndpointSlice's metadata");
  return {
    metadata: {
      name: textOf(metadata.name, "an EndpointSlice's name"),
      namespace: textOf(metadata.namespace, "an EndpointSlice's namespace"),
      resourceVersion: textOf(metadata.resourceVersion, "an EndpointSlice's resourceVersion"),
      labels: textsOf(metadata.labels, "an EndpointSlice's labels"),
      annotations: textsOf(metadata.annotations, "an EndpointSlice's annotations"),
    },
    addressType: textOf(slice.addressType, "an EndpointSlice's addressType"),
    endpoints: listOf(slice.endpoints, "an EndpointSlice's endpoints").map(endpointOf),
    ports: listOf(slice.ports, "an EndpointSlice's ports").map(portOf),
  };
}

function endpointOf(value: unknown): Endpoint {
  const endpoint = recordOf(value, "an endpoint");
  const conditions = recordOrNull(endpoint.conditions, "an endpoint's conditions");
  const targetRef = recordOrNull(endpoint.targetRef, "an endpoint's targetRef");
  const ready = conditions?.ready ?? null;
  if (ready !== null && typeof ready !== "boolean") {
    throw new Error("an endpoint's ready is neither true nor false");
  }
  return {
    addresses: listOf(endpoint.addresses, "an endpoint's addresses").map((address) =>
      textOf(address, "an endpoint's address"),
    ),
    conditions: { ready },
    hostname: textOrNull(endpoint.hostname, "an endpoint's hostname"),
    targetRef: targetRef && {
      kind: textOrNull(targetRef.kind, "the kind of a targetRef"),
      name: textOrNull(targetRef.name, "the name of a targetRef"),
    },
  };
}

function portOf(value: unknown): EndpointPort {
  const { name, port = null, appProtocol } = recordOf(value, "a port");
  if (port !== null && !isPortNumber(port)) throw new Error("a port's number is none");
  return {
    name: textOrNull(name, "a port's name"),
    port,
    appProtocol: textOrNull(appProtocol, "a port's appProtocol"),
  };
}

function isPortNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 65_535;
}

function textOf(value: unknown, what: string): string {
  if (typeof value !== "string") throw new Error(`${what} is no string`);
  return value;
}

function textOrNull(value: unknown, what: string): string | null {
  return value === undefined || value === null ? null : textOf(value, what);
}

function textsOf(value: unknown, what: string): Readonly<Record<string, string>> | null {
  const record = recordOrNull(value, what);
  return record !== null && hasOnlyTexts(record, what) ? record : null;
}

function hasOnlyTexts(
  record: Readonly<Record<string, unknown>>,
  what: string,
): record is Readonly<Record<string, string>> {
  for (const name in record) textOf(record[name], `one of ${what}`);
  return true;
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`${what} are no list`);
  return value;
}

function recordOrNull(value: unknown, what: string): Readonly<Record<string, unknown>> | null {
  return value === undefined || value === null ? null : recordOf(value, what);
}

function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new Error(`${what} is no object`);
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
