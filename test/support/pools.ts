import type { PoolKey, Registration } from "../../src/pools/pool.ts";
import type { RegistrationStore } from "../../src/registrations/store.ts";

/** The registration of the reference's example, with what is given in place of its own. */
export function makeRegistration(overrides: Partial<Registration> = {}): Registration {
  return {
    key: makeKey("mocker-west-1"),
    location: { region: "us-west-2", availability_zone: null, datacenter: null },
    model: "Qwen/Qwen3-0.6B",
    capabilities: ["aggregated"],
    frontends: ["http://10.43.1.2:8000/"],
    capacity: [{ sku: "H100", workers: 8 }],
    ...overrides,
  };
}

export function makeKey(dgdName: string, overrides: Partial<PoolKey> = {}): PoolKey {
  return { cluster_id: "aws-west", namespace: "dynamo", dgd_name: dgdName, ...overrides };
}

/** Registers a pool as the service does it: what is known to the letter is only renewed. */
export function send(
  store: Pick<RegistrationStore, "register" | "renew">,
  registration: Registration,
): void | Promise<void> {
  const text = JSON.stringify(registration);
  return store.renew(text) ? undefined : store.register(registration, text);
}
