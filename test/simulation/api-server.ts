import type { EndpointSlice, WatchEvent } from "../../src/kubernetes/slice-api.ts";
import { nameOf } from "../support/slice-events.ts";

type SliceEvent = Exclude<WatchEvent, { type: "BOOKMARK" }>;

interface Change {
  readonly version: number;
  readonly event: SliceEvent;
}

/** Hears of changes as they happen. */
export type Watcher = (event: SliceEvent) => void;

/** The slices that an API server has, and what of their history it still knows. */
export class ApiServer {
  readonly #slices = new Map<string, EndpointSlice>();
  readonly #watchers = new Set<Watcher>();
  #history: Change[] = [];
  #version = 100;
  /** The last version whose changes are forgotten. */
  #forgottenUpTo = 100;

  get version(): string {
    return String(this.#version);
  }

  slices(): EndpointSlice[] {
    return [...this.#slices.values()];
  }

  /** Adds a slice, or changes it. */
  put(slice: EndpointSlice): void {
    const type = this.#slices.has(nameOf(slice)) ? "MODIFIED" : "ADDED";
    const stored = this.#record(type, slice);
    this.#slices.set(nameOf(slice), stored);
  }

  remove(name: string): void {
    const slice = this.#slices.get(name);
    if (slice === undefined) return;
    this.#slices.delete(name);
    this.#record("DELETED", slice);
  }

  /** Forgets what has led to the present state. */
  compact(): void {
    // What else the server keeps has changed as well, and shares the versions.
    this.#version += 1;
    this.#history = [];
    this.#forgottenUpTo = this.#version;
  }

  /** What has happened since a version; undefined where that is forgotten, or never was. */
  since(version: string): SliceEvent[] | undefined {
    const after = Number(version);
    if (after < this.#forgottenUpTo || after > this.#version) return undefined;
    return this.#history.filter((change) => change.version > after).map(({ event }) => event);
  }

  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #record(type: SliceEvent["type"], slice: EndpointSlice): EndpointSlice {
    this.#version += 1;
    const metadata = { ...slice.metadata, resourceVersion: this.version };
    const event = { type, slice: { ...slice, metadata } };
    this.#history.push({ version: this.#version, event });
    for (const watcher of this.#watchers) watcher(event);
    return event.slice;
  }
}
