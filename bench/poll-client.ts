/**
 * Clients that ask for a list about once a second and keep what they got, as routers do, in a process of
 * their own. Runs until it is ended.
 *
 * Arguments: the list's URL, and how many clients.
 */
const [url = "", clients] = process.argv.slice(2);

const PERIOD_MS = 1000;

async function poll(): Promise<never> {
  // They were not all started at the same moment.
  await Bun.sleep(Math.random() * PERIOD_MS);
  let etag = "";
  for (;;) {
    const answer = await fetch(url, {
      headers: { "Accept-Encoding": "gzip, zstd", "If-None-Match": etag },
      // What the client does with the list is not the server's doing.
      decompress: false,
    });
    await answer.bytes();
    if (answer.status !== 304 && !answer.ok) throw new Error(`${url} answers ${answer.status}`);
    etag = answer.headers.get("ETag") ?? "";
    await Bun.sleep(PERIOD_MS * (0.9 + 0.2 * Math.random()));
  }
}

await Promise.all(Array.from({ length: Number(clients) }, poll));

export {};
