/**
 * Bun's `fetch`, which goes straight to the host that it is told: `HTTPS_PROXY` and its like in the
 * environment are not heeded. It gives up when its signal says so, and not by itself.
 */
export function directFetch(input: string | URL | Request, init?: BunFetchRequestInit) {
  return fetch(input, { ...init, proxy: false, timeout: false });
}
