import type { Endpoint, EndpointSlice, SlicePage, WatchEvent } from "./slice-api.ts";

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
    continueToken: typeof next === "string" && next !== "" ? next : undefined,
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

/** Takes of a slice what is read here, so that the rest of it is not kept. */
function sliceOf(value: unknown): EndpointSlice {
  if (!isSlice(value)) {
    throw new Error("an EndpointSlice has no name, namespace, resourceVersion or addressType");
  }
  const { name, namespace, resourceVersion, labels = null, annotations = null } = value.metadata;
  return {
    metadata: { name, namespace, resourceVersion, labels, annotations },
    addressType: value.addressType,
    endpoints: (value.endpoints ?? []).map(endpointOf),
    ports: (value.ports ?? []).map(({ name = null, port = null, appProtocol = null }) => ({
      name,
      port,
      appProtocol,
    })),
  };
}

function endpointOf(endpoint: Endpoint): Endpoint {
  const { addresses, conditions = null, hostname = null, targetRef = null } = endpoint;
  return { addresses, conditions, hostname, targetRef };
}

/** Whether an object is a slice, so far as the API server may not have checked it. */
function isSlice(value: unknown): value is EndpointSlice {
  if (!isRecord(value) || !isRecord(value.metadata)) return false;
  const { name, namespace, resourceVersion } = value.metadata;
  return [name, namespace, resourceVersion, value.addressType].every(
    (part) => typeof part === "string",
  );
}

function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new Error(`${what} is no object`);
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
