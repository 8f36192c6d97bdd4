/** What stands where nothing is known. */
export const UNKNOWN = "–";

const UNITS = [
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
] as const;

/** A length of time in its two largest units, rounded down: `3 d 4 h`, `12 s`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const first = UNITS.findIndex(([, size]) => whole >= size);
  if (first < 0) return "0 s";
  let rest = whole;
  const parts: string[] = [];
  for (const [unit, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(" ");
}

export function lasting(seconds: number | null): string {
  return seconds === null ? UNKNOWN : duration(seconds);
}

export function ago(seconds: number | null): string {
  return seconds === null ? UNKNOWN : `${duration(seconds)} ago`;
}

export function milliseconds(ms: number | null): string {
  if (ms === null) return UNKNOWN;
  return `${ms < 10 ? ms.toFixed(1) : count(Math.round(ms))} ms`;
}

/** A number with its thousands apart. */
export function count(number: number | null): string {
  return number === null ? UNKNOWN : number.toLocaleString("en");
}

/** A number of things: `1 pool`, `2 pools`. */
export function counted(number: number, thing: string): string {
  return `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** A time of day in UTC, as the service's log has it. */
export function timeOfDay(date: Date): string {
  return `${date.toISOString().slice(11, 19)} UTC`;
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  "not-imported": "not imported from another cluster",
  "other-namespace": "a broker's copy, outside the namespace of its Service",
  "unknown-cluster": "imported, but from which cluster can't be told",
  fqdn: "its addresses are names, not IP addresses",
  "other-service": "its Service is neither a pool's nor the routers'",
};

/** Why slices are left out, in words. */
export function leftOutReason(reason: string): string {
  return Object.hasOwn(LEFT_OUT, reason) ? (LEFT_OUT[reason] ?? reason) : reason;
}
