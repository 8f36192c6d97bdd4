/** What an action rejects with. Bun's `expect().rejects` would keep timers from running meanwhile. */
export async function thrownBy(action: () => Promise<unknown>): Promise<Error> {
  try {
    await action();
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error(`it threw what is no error: ${error}`);
  }
  throw new Error("it did not fail");
}
