import { type Decoded, decode, encode, type Item } from "../../src/registrations/dynamodb/item.ts";
import {
  type RegistrationTable,
  TableError,
  type Write,
} from "../../src/registrations/dynamodb/table.ts";

/** Something to happen before a page is read or an item is written; it may take time, or throw. */
export type Hook = (signal: AbortSignal) => Promise<void> | void;

/** A table in memory, whose every step a test can hold up or fail. */
export class FakeTable implements RegistrationTable {
  readonly items = new Map<string, Item>();
  pageSize = Number.POSITIVE_INFINITY;
  /** Before each page, with the number of the page, from 1. */
  beforePage: (page: number, signal: AbortSignal) => Promise<void> | void = () => {};
  /** Before an item is written. */
  beforeWrite: Hook = () => {};
  /** After it was written, before the answer. */
  afterWrite: Hook = () => {};
  onCheck: () => string[] = () => [];
  writes = 0;
  reads = 0;
  readsUnderWay = 0;
  mostReadsUnderWay = 0;
  checks = 0;
  isClosed = false;

  async check(): Promise<string[]> {
    this.checks += 1;
    return this.onCheck();
  }

  async *pages(signal: AbortSignal): AsyncGenerator<readonly Decoded[]> {
    this.reads += 1;
    this.readsUnderWay += 1;
    this.mostReadsUnderWay = Math.max(this.mostReadsUnderWay, this.readsUnderWay);
    try {
      for (let start = 0, page = 1; page === 1 || start < this.items.size; page += 1) {
        await this.beforePage(page, signal);
        if (signal.aborted) throw new TableError("timeout", "aborted");
        yield [...this.items.values()].slice(start, start + this.pageSize).map(decode);
        start += this.pageSize;
      }
    } finally {
      this.readsUnderWay -= 1;
    }
  }

  async write({ id, text, renewal, present }: Write, signal: AbortSignal): Promise<Item> {
    await this.beforeWrite(signal);
    this.writes += 1;
    const { pk: _pk, sk: _sk, ...old } = this.items.get(id) ?? {};
    const registration = present === "kept" ? old.registration : undefined;
    this.put(id, { ...encode(text, renewal), ...(registration && { registration }) });
    await this.afterWrite(signal);
    return old;
  }

  close(): void {
    this.isClosed = true;
  }

  /** Puts attributes into the table, as some other writer would. */
  put(id: string, attributes: Item): void {
    this.items.set(id, { pk: { S: "pool" }, sk: { S: id }, ...attributes });
  }
}
