import { expect, test } from "bun:test";
import { idOf, MAX_ROWS, select } from "../../../src/http/page/client/select.ts";
import { poolState } from "../../fixtures/explanation.ts";

function pool(name: string, overrides: Parameters<typeof poolState>[1] = {}) {
  const [cluster_id = "", namespace = "", dgd_name = ""] = name.split("/");
  return poolState({ cluster_id, namespace, dgd_name }, overrides);
}

const everything = { words: "", onlyUnlisted: false };

function namesOf(rows: readonly ReturnType<typeof pool>[]): string[] {
  return rows.map(idOf);
}

test("pools that are not listed come first, then what is odd, each in the given order", () => {
  const pools = [
    pool("a/n/fine"),
    pool("a/n/odd", { reasons: ["it has no frontends"] }),
    pool("b/n/gone", { listed: false, reasons: ["lease ended 12 s ago"] }),
    pool("b/n/disputed", { disagreements: { count: 1, fields: ["model"] } }),
    pool("c/n/fine", { disagreements: null }),
    pool("c/n/gone", { listed: false, disagreements: { count: 1, fields: ["model"] } }),
  ];
  expect(namesOf(select(pools, everything).rows)).toEqual([
    "b/n/gone",
    "c/n/gone",
    "a/n/odd",
    "b/n/disputed",
    "a/n/fine",
    "c/n/fine",
  ]);
});

test("every word of the filter has to be somewhere in the key, in upper or lower case", () => {
  const pools = [pool("aws-west/dynamo/Qwen"), pool("aws-east/dynamo/qwen"), pool("gcp/x/llama")];
  const found = (words: string) => namesOf(select(pools, { words, onlyUnlisted: false }).rows);
  expect(found("QWEN")).toEqual(["aws-west/dynamo/Qwen", "aws-east/dynamo/qwen"]);
  expect(found("  qwen\twest ")).toEqual(["aws-west/dynamo/Qwen"]);
  expect(found("dynamo/q")).toHaveLength(2);
  expect(found("gcp qwen")).toEqual([]);
  expect(found(" ")).toHaveLength(3);
});

test("only what is not listed is shown where that is asked for", () => {
  const pools = [pool("a/n/1"), pool("a/n/2", { listed: false }), pool("b/n/3", { listed: false })];
  const { rows, matching } = select(pools, { words: "a", onlyUnlisted: true });
  expect(namesOf(rows)).toEqual(["a/n/2"]);
  expect(matching).toBe(1);
});

test("of thousands, some hundred are shown and all are counted", () => {
  const pools = Array.from({ length: 10_000 }, (_, n) => pool(`c/n/${n}`, { listed: n !== 9_999 }));
  const { rows, matching } = select(pools, everything);
  expect(rows).toHaveLength(MAX_ROWS);
  expect(matching).toBe(10_000);
  expect(rows[0]?.key.dgd_name).toBe("9999");
});
