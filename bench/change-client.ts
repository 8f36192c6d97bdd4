/**
 * A client that posts registrations whose content is new each time, at a steady pace: whether or not the
 * ones before are answered, since relays don't wait for each other. Prints how long it waited for an
 * answer in milliseconds: the median, and the worst of a hundred cases.
 *
 * Arguments: the server's URL, a file of registrations, one a line, how many to post each second, and for
 * how many seconds.
 */
const [url, path = "", rate, seconds] = process.argv.slice(2);

const bodies = (await Bun.file(path).text()).trimEnd().split("\n");
/** Registrations that follow each other are far apart in the list. */
const STRIDE = 617;
const run = process.pid;

async function post(number: number): Promise<number> {
  const known = JSON.parse(bodies[(number * STRIDE) % bodies.length] ?? "");
  // Other than what any run before has left.
  const body = JSON.stringify({ ...known, capacity: [{ sku: `H${run}`, workers: number }] });
  const headers = { "Content-Type": "application/json" };
  const beganMs = performance.now();
  const answer = await fetch(`${url}/pools`, { method: "POST", headers, body });
  await answer.bytes();
  if (!answer.ok) throw new Error(`a registration is answered with ${answer.status}`);
  return performance.now() - beganMs;
}

const beganMs = performance.now();
const waits: Promise<number>[] = [];
for (const count = Number(rate) * Number(seconds); waits.length < count; ) {
  const dueMs = beganMs + (waits.length * 1000) / Number(rate);
  await Bun.sleep(Math.max(0, dueMs - performance.now()));
  waits.push(post(waits.length));
}
const sorted = (await Promise.all(waits)).sort((a, b) => a - b);
console.log([0.5, 0.99].map((part) => sorted[Math.floor(sorted.length * part)]).join(" "));

export {};
