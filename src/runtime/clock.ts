/** Cancels a timer. Harmless when the timer has ended already. */
export type Cancel = () => void;

/**
 * Where all time and chance come from, so that a test can run an hour in a millisecond and the same
 * seed gives the same run.
 */
export interface Clock {
  /** Milliseconds since some moment; never goes back, and setting the wall clock doesn't move it. */
  monotonicMs(): number;
  /** Milliseconds since 1970. */
  wallMs(): number;
  /** A number from 0 to below 1, by chance. */
  random(): number;
  /** Calls once, `delayMs` from now or later. */
  after(delayMs: number, callback: () => void): Cancel;
  /** Calls again and again, `periodMs` apart. */
  every(periodMs: number, callback: () => void): Cancel;
}

/**
 * Runs `action` with a signal that is aborted after `deadlineMs`, and rejects with the signal's
 * reason then, whether or not the action heeds it. It also rejects what comes after the deadline but
 * before the timer, as it may when the process could not run for a while.
 */
export async function withDeadline<T>(
  clock: Clock,
  deadlineMs: number,
  action: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const beganAtMs = clock.monotonicMs();
  const controller = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const reason = new DeadlineError(`no answer within ${deadlineMs / 1000} s`);
  const cancel = clock.after(deadlineMs, () => {
    controller.abort(reason);
    reject(reason);
  });
  try {
    const result = await Promise.race([action(controller.signal), late]);
    if (clock.monotonicMs() - beganAtMs > deadlineMs) throw reason;
    return result;
  } finally {
    cancel();
  }
}

/** An action took longer than it was given. */
export class DeadlineError extends Error {}

/** The machine's own time. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  random: () => Math.random(),
  after(delayMs, callback) {
    if (delayMs <= 0) {
      // A timer would wait for a millisecond all the same.
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    }
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
  every(periodMs, callback) {
    const timer = setInterval(callback, periodMs);
    return () => clearInterval(timer);
  },
};
