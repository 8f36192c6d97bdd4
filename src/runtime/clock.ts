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
  /** Calls once, `delayMs` from now or later. */
  after(delayMs: number, callback: () => void): Cancel;
  /** Calls again and again, `periodMs` apart. */
  every(periodMs: number, callback: () => void): Cancel;
}

/** The machine's own time. */
export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
  every(periodMs, callback) {
    const timer = setInterval(callback, periodMs);
    return () => clearInterval(timer);
  },
};
