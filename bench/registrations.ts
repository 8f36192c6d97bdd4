import { BenchError } from "./errors.ts";
import type { Server } from "./server.ts";

/**
 * The JSON of `count` registrations, as relays send them. They are the same in every run, and the
 * first ones are the same whatever the count.
 */
export function registrations(count: number): string[] {
  return Array.from({ length: count }, (_, index) => JSON.stringify(registration(index)));
}

/** One registration of everyday size. Its neighbours belong to other clusters. */
function registration(index: number) {
  return {
    key: {
      cluster_id: `aws-west-${index % 50}`,
      namespace: "dynamo",
      dgd_name: `mocker-west-${index}`,
    },
    location: { region: "us-west-2", availability_zone: null, datacenter: null },
    model: "Qwen/Qwen3-0.6B",
    capabilities: ["aggregated"],
    frontends: [`http://10.43.${(index >>> 8) % 256}.${index % 256}:8000/`],
    capacity: [{ sku: "H100", workers: 8 }],
  };
}

/** Registers so many pools, and returns the bodies that renew them. */
export async function register(service: Server, pools: number): Promise<string[]> {
  const bodies = registrations(pools);
  await post(service, bodies);
  const listed = (await (await fetchList(service)).text()).match(/"key":/g)?.length ?? 0;
  if (listed !== pools) throw new BenchError(`${listed} of ${pools} pools are listed`);
  return bodies;
}

/** How many requests are under way at a time. */
const POSTS_AT_ONCE = 32;

/** Posts each body once. */
export async function post(service: Server, bodies: readonly string[]): Promise<void> {
  const queue = bodies.values();
  const headers = { "Content-Type": "application/json" };
  const worker = async () => {
    for (const body of queue) {
      const answer = await fetch(`${service.url}/pools`, { method: "POST", headers, body });
      const text = await answer.text();
      if (!answer.ok) throw new BenchError(`a registration is refused: ${text}`);
    }
  };
  await Promise.all(Array.from({ length: POSTS_AT_ONCE }, worker));
}

/** `GET /pools`, uncompressed unless the headers say otherwise. */
export function fetchList(
  service: Server,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return fetch(`${service.url}/pools`, { headers: { "Accept-Encoding": "identity", ...headers } });
}
