/**
 * A client that asks for a list again and again, as a process of its own: what else the bench does
 * must not pass for the server's doing. Prints how long it waited in the worst of a hundred cases,
 * in milliseconds.
 *
 * Arguments: the list's URL, and for how many seconds.
 */
const [url = "", seconds] = process.argv.slice(2);

/** Between an answer and the next request. */
const PAUSE_MS = 2;

const endMs = performance.now() + Number(seconds) * 1000;
const waitsMs: number[] = [];
while (performance.now() < endMs) {
  const beganMs = performance.now();
  const answer = await fetch(url, {
    headers: { "Accept-Encoding": "zstd" },
    // What the client does with the list is not the server's doing: 3 MB to unpack, and to collect.
    decompress: false,
  });
  await answer.bytes();
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
  waitsMs.push(performance.now() - beganMs);
  await Bun.sleep(PAUSE_MS);
}
console.log(waitsMs.sort((a, b) => a - b)[Math.floor(waitsMs.length * 0.99)]);

export {};
