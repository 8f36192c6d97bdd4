/** What the operating system counts of this process, in the units of Prometheus' process metrics. */
export interface ProcessFacts {
  /** User and system time of all threads. */
  readonly cpuSecs: number;
  readonly residentBytes: number;
  /** In seconds since 1970. */
  readonly startedAtSecs: number;
}

export function processFacts(): ProcessFacts {
  const { user, system } = process.cpuUsage();
  return {
    cpuSecs: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    // Not from /proc, whose clock of starts moves when the wall clock is set.
    startedAtSecs: performance.timeOrigin / 1000,
  };
}
