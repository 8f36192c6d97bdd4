/** A bug put in by hand: in `file`, the only `before` becomes `after`. */
export interface Mutation {
  readonly bug: string;
  readonly file: string;
  readonly before: string;
  readonly after: string;
}

const MEMORY = "src/registrations/memory.ts";
const DYNAMO = "src/registrations/dynamodb/store.ts";
const REFLECTOR = "src/kubernetes/reflector.ts";
const SLICES = "src/kubernetes/slices.ts";
const WAITERS = "src/directory/waiters.ts";

export const MUTATIONS: readonly Mutation[] = [
  {
    bug: "a lease in memory ends one tick early",
    file: MEMORY,
    before: "!this.#hasEnded(this.#order.renewedAtMs(place), nowMs)",
    after: "!this.#hasEnded(this.#order.renewedAtMs(place), nowMs + 1)",
  },
  {
    bug: "a text that another registration has replaced still renews its pool",
    file: MEMORY,
    before: "if (lease.text !== undefined) this.#placeByText.delete(lease.text);",
    after: "",
  },
  {
    bug: "a registration whose lists come in another order replaces the one that is listed",
    file: MEMORY,
    before: "if (fields.length > 0) this.#replace(",
    after: "if (fields.length >= 0) this.#replace(",
  },
  {
    bug: "pauses of the process count as time that it ran",
    file: "src/runtime/run-clock.ts",
    before: "this.#pausedMs += gapMs;",
    after: "",
  },
  {
    bug: "a list is complete at once after a pause",
    file: "src/runtime/run-clock.ts",
    before: "this.#resumedAtMs = monotonicMs - this.#startedAtMs - this.#pausedMs;",
    after: "",
  },
  {
    bug: "a lease in the table ends one tick early",
    file: DYNAMO,
    before: "    if (endsAtMs < nowMs) {\n      this.#unlist(pool);",
    after: "    if (endsAtMs <= nowMs) {\n      this.#unlist(pool);",
  },
  {
    bug: "a read undoes a write that was answered after it began",
    file: DYNAMO,
    before: "if (known.writtenAt > beganAt) continue;",
    after: "",
  },
  {
    bug: "a pool that the table no longer has stays",
    file: DYNAMO,
    before: "if (pool.foundAt === beganAt || pool.writtenAt > beganAt) continue;",
    after: "if (this.#isClosed || pool.foundAt <= beganAt) continue;",
  },
  {
    bug: "of what was read and what is known, the later by the writers' clocks wins",
    file: DYNAMO,
    before: "if (known.writtenAt > beganAt) continue;",
    after: "if (known.renewal.renewedAtMs > found.renewal.renewedAtMs) continue;",
  },
  {
    bug: "the skew is left out",
    file: DYNAMO,
    before: "return renewedAtMs + (leaseSecs + this.#options.skewSecs) * 1000;",
    after: "return renewedAtMs + leaseSecs * 1000;",
  },
  {
    bug: "a list is complete while a pool is listed by the grace",
    file: DYNAMO,
    before: "if (this.#inGrace > 0) yield",
    after: "if (this.#inGrace < 0) yield",
  },
  {
    bug: "the grace is given to pools of the reader's own region too",
    file: DYNAMO,
    before: "(isOurs ? 0 : this.#options.replicationGraceSecs * 1000)",
    after: "this.#options.replicationGraceSecs * 1000",
  },
  {
    bug: "a list is complete however old the last read is",
    file: DYNAMO,
    before: "if (readMsAgo > STALE_POLLS * this.#pollMs()) yield",
    after: "if (readMsAgo < 0) yield",
  },
  {
    bug: "a read that breaks off half-way counts",
    file: DYNAMO,
    before:
      "      for (const item of page) this.#examine(item, snapshot, { nowMs, futureMs });\n    }\n" +
      "    return snapshot;\n",
    after:
      "      for (const item of page) this.#examine(item, snapshot, { nowMs, futureMs });\n" +
      "      if (snapshot.pools.length > 0) break;\n    }\n    return snapshot;\n",
  },
  {
    bug: "an item that can't be decoded leaves the list complete",
    file: DYNAMO,
    before: "      this.#undecodableLive += 1;\n",
    after: "",
  },
  {
    bug: "the wall clock goes on during a pause, before the table is read again",
    file: DYNAMO,
    before: "return clock.wallMs() - pausedMs;",
    after: "return clock.wallMs() + 0 * pausedMs;",
  },
  {
    bug: "a read during which the process stood still counts",
    file: DYNAMO,
    before: "if (runClock.pausedMs() !== pausedMs) {",
    after: "if (runClock.pausedMs() < pausedMs) {",
  },
  {
    bug: "of two writes that are under way at once, the one that is answered last stands",
    file: DYNAMO,
    before: "const record = hasOverlapped ?",
    after: "const record = false && before ?",
  },
  {
    bug: "an answer that comes after the deadline counts",
    file: "src/runtime/clock.ts",
    before: "    if (clock.monotonicMs() - beganAtMs > deadlineMs) throw reason;\n",
    after: "",
  },
  {
    bug: "a process that was stopped sends the renewals that it had begun",
    file: DYNAMO,
    before:
      "clock.monotonicMs() > lateAfterMs || clock.wallMs() - renewal.renewedAtMs > deadlineMs;",
    after: "false;",
  },
  {
    bug: "nothing is looked at anew when the wall clock is set back",
    file: DYNAMO,
    before: "if (nowMs < this.#asOfMs || nowMs > this.#unchangedUntilMs)",
    after: "if (nowMs > this.#unchangedUntilMs)",
  },
  {
    bug: "a write to an item that was not read yet replaces the order of its lists",
    file: DYNAMO,
    before: 'const present = known === undefined ? "kept" : "replaced";',
    after: 'const present = "replaced" as "kept" | "replaced";',
  },
  {
    bug: "the list is not sorted part by part: a name stands behind those that it is the beginning of",
    file: "src/pools/pool.ts",
    before: "  if (code === SLASH) return -1;\n",
    after: "",
  },
  {
    bug: "a list made anew takes the place of one that is the same, with an ETag of its own",
    file: "src/directory/representation.ts",
    before: "this.hash = hash.slice(0, 32);",
    after: 'this.hash = Bun.SHA256.hash(hash + performance.now(), "hex").slice(0, 32);',
  },
  {
    bug: "a slice that is gone when all are listed again stays",
    file: SLICES,
    before: "      if (!present.has(id)) this.#drop(id);\n",
    after: "",
  },
  {
    bug: "a DELETED event is passed over",
    file: REFLECTOR,
    before: 'if (event.type === "DELETED") sink.remove(event.slice);\n    else sink.put',
    after: 'if (event.type !== "DELETED") sink.put',
  },
  {
    bug: "a slice that changes its labels stays with its old Service too",
    file: SLICES,
    before: "    service.slices.splice(service.slices.indexOf(known), 1);\n",
    after: "",
  },
  {
    bug: "slices with hand-made names stay where they are when clusters come and go",
    file: SLICES,
    before: "if (this.#clusters.remove(cluster)) this.#matchAgain(cluster);",
    after: "this.#clusters.remove(cluster);",
  },
  {
    bug: "slices count as current for ever once they were read",
    file: REFLECTOR,
    before: "if (nowMs - this.#unwatchedSinceMs <= CURRENT_MS) return true;",
    after: "if (nowMs >= this.#unwatchedSinceMs) return true;",
  },
  {
    bug: "a watch whose version is gone is begun again from that version, for ever",
    file: REFLECTOR,
    before: 'if (ending.reason === "expired" || !this.isCurrent())',
    after: 'if (ending.reason !== "expired" && !this.isCurrent())',
  },
  {
    bug: "a silent watch is never cut",
    file: "src/kubernetes/watchdog.ts",
    before: "    else this.abort(new DeadlineError(",
    after: "    else this.#lookIn(CATCH_UP_MS, new DeadlineError(",
  },
  {
    bug: "watches that end at once count as watching",
    file: REFLECTOR,
    before: "return nowMs - (this.#establishedAtMs ?? nowMs) >= SHORT_WATCH_MS;",
    after: "return this.#establishedAtMs !== undefined;",
  },
  {
    bug: "a watch goes on from the list's version after each break",
    file: REFLECTOR,
    before: "    this.#resourceVersion = event.slice.metadata.resourceVersion;\n",
    after: "",
  },
  {
    bug: "who waits is not told what changes by time alone",
    file: WAITERS,
    before: "const delayMs = this.#looksAgain ? 0 : limits.waitersLookMs;",
    after: "const delayMs = this.#looksAgain ? 0 : 60_000;",
  },
  {
    bug: "who comes with an old list waits for the next change",
    file: WAITERS,
    before: "    this.#arrived.add(waiter);\n",
    after: "",
  },
  {
    bug: "a change that is undone wakes who waits",
    file: WAITERS,
    before: "      if (waiter.client.has(list)) continue;\n",
    after: "",
  },
  {
    bug: "who goes away is kept waiting",
    file: WAITERS,
    before:
      '    client.signal.addEventListener("abort", () => this.#release(waiter, undefined));\n',
    after: "",
  },
  {
    bug: "who waits is told late that the time is over",
    file: WAITERS,
    before: "cancelDeadline: this.#clock.after(client.waitMs,",
    after: "cancelDeadline: this.#clock.after(client.waitMs + limits.waitersLookMs,",
  },
  {
    bug: "nobody looks again for who comes after all were told",
    file: WAITERS,
    before: "    this.#nextLook?.cancel();\n    this.#nextLook = undefined;\n  }",
    after: "    this.#nextLook?.cancel();\n  }",
  },
];
