import { pressureSecs } from "./pressure.ts";

/** The middle value; of an even number of them, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const around = sorted.slice(Math.ceil(middle) - 1, Math.floor(middle) + 1);
  return around.reduce((sum, value) => sum + value, 0) / around.length;
}

/** How often to measure. */
export interface Rounds {
  /** How many rounds count. */
  readonly wanted: number;
  /** How many more there may be to make up for disturbed ones. */
  readonly spare: number;
}

/**
 * A round in which programs waited for a CPU for more than this part of it was disturbed. On a
 * quiet machine of two cores, a server and its load wait for a tenth.
 */
const DISTURBED = 0.2;

/** Repeats a measurement, and returns what came out when other programs disturbed it least. */
export async function calmest<T>(
  { wanted, spare }: Rounds,
  measure: (round: number) => Promise<T>,
): Promise<T[]> {
  const taken: { readonly result: T; readonly waited: number }[] = [];
  let calm = 0;
  for (let round = 0; round < wanted + spare && calm < wanted; round++) {
    const [startedMs, waitedBefore] = [performance.now(), pressureSecs()];
    const result = await measure(round);
    const waited = (pressureSecs() - waitedBefore) / ((performance.now() - startedMs) / 1000);
    taken.push({ result, waited });
    if (waited <= DISTURBED) calm += 1;
  }
  const sorted = taken.toSorted((a, b) => a.waited - b.waited);
  return sorted.slice(0, wanted).map(({ result }) => result);
}

type Measure<T> = () => Promise<T>;

/** The same of the service and of what it is compared with. */
export interface Pair<T> {
  readonly service: T;
  readonly peer: T;
}

/**
 * Measures two sides in turn, so that whatever else the machine does hits both. The side that goes
 * first changes with each round: a load that grows or shrinks favours neither.
 */
export async function alternate<T>(rounds: Rounds, sides: Pair<Measure<T>>): Promise<Pair<T[]>> {
  const pairs = await calmest(rounds, async (round) => {
    if (round % 2 === 0) return { service: await sides.service(), peer: await sides.peer() };
    const peer = await sides.peer();
    return { service: await sides.service(), peer };
  });
  return { service: pairs.map(({ service }) => service), peer: pairs.map(({ peer }) => peer) };
}
