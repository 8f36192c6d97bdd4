import type { Findings } from "./findings.ts";
import type { Replica } from "./replica.ts";

interface MemorySample {
  readonly atMs: number;
  readonly bytes: number;
}

const MB = 1024 * 1024;
/** How much more a process may have at the end than a third of the way in, under the same load. */
const MOST_GROWTH = { factor: 1.3, bytes: 8 * MB } as const;

/** Samples the memory of the replicas that are never ended. */
export class Memory {
  readonly #samples = new Map<Replica, MemorySample[]>();

  sample(replicas: readonly Replica[]): void {
    for (const replica of replicas) {
      const bytes = replica.parts.isSteady ? replica.anonymousBytes() : undefined;
      if (bytes === undefined) continue;
      const samples = this.#samples.get(replica) ?? [];
      samples.push({ atMs: Date.now(), bytes });
      this.#samples.set(replica, samples);
    }
  }

  /**
   * Checks that no process has grown: the least that it had in the last sixth of the run, where garbage
   * was collected, against the least from a third of the way on. Returns a line for each of them.
   */
  judge(findings: Findings): string[] {
    const lines: string[] = [];
    for (const [replica, samples] of this.#samples) {
      // Too few to tell anything.
      if (samples.length < 24) continue;
      const part = (from: number, to: number) =>
        samples.slice(Math.floor(from * samples.length), Math.ceil(to * samples.length));
      const early = least(part(1 / 3, 1 / 2));
      const late = least(part(5 / 6, 1));
      const growth = `${mb(early)} MB a third of the way in, ${mb(late)} MB at the end`;
      const slope = (slopeOf(part(1 / 3, 1)) * 3_600_000) / MB;
      lines.push(`${replica.name}: ${growth}, slope ${slope.toFixed(1)} MB/h`);
      const isGrown = late > early * MOST_GROWTH.factor && late > early + MOST_GROWTH.bytes;
      findings.check(!isGrown, () => `the memory of ${replica.name} grows: ${growth}`);
    }
    return lines;
  }
}

function least(samples: readonly MemorySample[]): number {
  return Math.min(...samples.map(({ bytes }) => bytes));
}

function mb(bytes: number): string {
  return (bytes / MB).toFixed(1);
}

/** Of the line that fits best, in bytes a millisecond. */
function slopeOf(samples: readonly MemorySample[]): number {
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const atMs = mean(samples.map((sample) => sample.atMs));
  const bytes = mean(samples.map((sample) => sample.bytes));
  let [above, below] = [0, 0];
  for (const sample of samples) {
    above += (sample.atMs - atMs) * (sample.bytes - bytes);
    below += (sample.atMs - atMs) ** 2;
  }
  return below === 0 ? 0 : above / below;
}
