import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openSliceApi, type SliceApiOptions } from "../../src/kubernetes/client.ts";
import { ApiError, type SliceApi, type WatchEvent } from "../../src/kubernetes/slice-api.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import type { FakeApiServer, SliceObject } from "./fake-api-server.ts";
import { dataOf, type KubeconfigParts, kubeconfigText } from "./kubeconfig.ts";
import { recordedLog } from "./recorded-log.ts";
import { temporaryFolder } from "./service.ts";
import { thrownBy } from "./thrown-by.ts";

/** A client of what a kubeconfig says. */
export async function openWith(
  parts: KubeconfigParts,
  options: Partial<SliceApiOptions> = {},
): Promise<SliceApi> {
  using folder = temporaryFolder();
  const path = join(folder.path, "config");
  await Bun.write(path, kubeconfigText(parts));
  return openSliceApi({
    labelSelector: "x",
    clock: systemClock,
    log: recordedLog().log,
    ...options,
    env: { PATH: process.env.PATH, ...options.env, KUBECONFIG: path },
  });
}

/** The cluster of a kubeconfig for a fake; `root` is the path of its CA. */
export function clusterOf(fake: FakeApiServer, root?: string) {
  return {
    server: fake.url,
    ...(root === undefined
      ? {}
      : { "certificate-authority-data": dataOf(readFileSync(root, "utf8")) }),
  };
}

/** A slice that the selector of these clients picks. */
export function sliceNamed(name: string): SliceObject {
  return {
    metadata: { name, namespace: "dynamo", labels: { x: "1" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.1.2.3"] }],
  };
}

const never = new AbortController().signal;

/** The names of the slices in the first page of a list. */
export async function listed(api: SliceApi, signal = never): Promise<string[]> {
  const { slices } = await api.list({ limit: 500, continueToken: undefined }, signal);
  return slices.map(({ metadata }) => metadata.name);
}

/** All events of a watch, until it ends. */
export async function watched(
  api: SliceApi,
  resourceVersion: string,
  { timeoutSecs = 300, signal = never } = {},
): Promise<WatchEvent[]> {
  const seen: WatchEvent[] = [];
  for await (const event of await api.watch({ resourceVersion, timeoutSecs }, signal)) {
    seen.push(event);
  }
  return seen;
}

/** The error of the API that an action rejects with, whose message is one line for people. */
export async function apiErrorOf(action: () => Promise<unknown>): Promise<ApiError> {
  const error = await thrownBy(action);
  if (!(error instanceof ApiError)) throw error;
  if (/\p{Cc}|verbose: true|\.[jt]s:\d/u.test(error.message) || error.message.length > 1200) {
    throw new Error(`it is not for people: ${error.message}`);
  }
  return error;
}
