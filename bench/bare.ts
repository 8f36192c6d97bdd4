/**
 * The peer that the service is measured against: the least that Bun's server can do for the same
 * requests. It knows its answers from the start and looks at nothing but the JSON of a `POST`.
 *
 * Arguments: the port, a file with the bytes that `GET /pools` answers, and its header fields as JSON.
 */
const [port, bodyPath, listFields = "{}"] = process.argv.slice(2);

const headers = { "Content-Type": "application/json" };
const listHeaders: Record<string, string> = JSON.parse(listFields);
const list = bodyPath === undefined ? new Uint8Array() : await Bun.file(bodyPath).bytes();
const registered = JSON.stringify({ heartbeat_interval_s: 5, lease_duration_s: 15 });

Bun.serve({
  hostname: "127.0.0.1",
  port: Number(port),
  // As in the service, so that what differs is what is done with a request.
  reusePort: false,
  development: false,
  // Functions throughout: a ready-made `Response` as a route would never leave native code.
  routes: {
    "/pools": {
      GET: () => new Response(list, { headers: listHeaders }),
      async POST(request) {
        await request.json();
        return new Response(registered, { headers });
      },
    },
    "/healthz": () => new Response(),
  },
});

export {};
