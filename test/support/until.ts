/** Waits for a promise, but no longer than `deadlineMs`; `detail` goes into the error. */
export async function within<T>(
  deadlineMs: number,
  what: string,
  promise: Promise<T>,
  detail: () => string = () => "",
): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new Error(`waited ${deadlineMs} ms for ${what}\n${detail()}`));
  }, deadlineMs);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks again and again until the answer is something, and returns that. */
export async function until<T>(
  what: string,
  probe: () => Promise<T | undefined> | T | undefined,
  deadlineMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`waited ${deadlineMs} ms for ${what}`);
    await Bun.sleep(20);
  }
}
