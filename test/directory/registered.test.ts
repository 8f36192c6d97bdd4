import { expect, test } from "bun:test";
import { RegisteredDirectory } from "../../src/directory/registered.ts";
import type { Router } from "../../src/directory/routers.ts";
import { MemoryStore } from "../../src/registrations/memory.ts";
import { RunClock } from "../../src/runtime/run-clock.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { makeKey, makeRegistration, send } from "../support/pools.ts";
import { recordedLog } from "../support/recorded-log.ts";

function setUp(routers: readonly Router[] = []) {
  const clock = new FakeClock();
  const runClock = new RunClock(clock, () => {});
  const directory = new RegisteredDirectory(
    (livePools) =>
      new MemoryStore({ leaseSecs: 15, livePools, clock, runClock, log: recordedLog().log }),
    routers,
    clock,
  );
  runClock.start(() => directory.expire());
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return {
    clock,
    directory,
    pools: () => text(directory.pools().bytes),
    routers: () => text(directory.routers().bytes),
  };
}

test("a pool is listed with the fields and their order of the reference", async () => {
  const { directory, pools } = setUp();
  await send(directory, makeRegistration());
  expect(pools()).toBe(
    '{"pools":[{"key":{"cluster_id":"aws-west","namespace":"dynamo","dgd_name":"mocker-west-1"},' +
      '"location":{"region":"us-west-2","availability_zone":null,"datacenter":null},' +
      '"model":"Qwen/Qwen3-0.6B","capabilities":["aggregated"],' +
      '"frontends":["http://10.43.1.2:8000/"],"capacity":[{"sku":"H100","workers":8}],' +
      '"relay_identities":[]}],"complete":false}',
  );
});

test("a heartbeat that changes nothing gives the very same bytes", async () => {
  const { directory, clock } = setUp();
  await send(directory, makeRegistration());
  clock.advance(15_001);
  await send(directory, makeRegistration());
  const before = directory.pools();
  clock.advance(5000);
  await send(directory, makeRegistration());
  expect(directory.pools()).toBe(before);
});

test("a pool leaves the list at the moment its lease ends, not at the next beat", async () => {
  const { directory, clock, pools } = setUp();
  await send(directory, makeRegistration({ key: makeKey("a") }));
  clock.advance(15_000);
  expect(pools()).toContain('"dgd_name":"a"');
  clock.pause(1);
  expect(pools()).toBe('{"pools":[],"complete":true}');
});

test("routers are listed by replica, then url", () => {
  const { routers } = setUp([
    { url: "http://b/", replica: "b" },
    { url: "http://z/", replica: "a" },
    { url: "http://c/", replica: "Z" },
  ]);
  expect(routers()).toBe(
    '{"routers":[{"replica":"Z","url":"http://c/"},{"replica":"a","url":"http://z/"},' +
      '{"replica":"b","url":"http://b/"}]}',
  );
});
