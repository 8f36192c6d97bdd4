import { expect, test } from "bun:test";
import { join } from "node:path";
import { MUTATIONS } from "./mutations.ts";

test("each bug of the mutation check still has its one place in the source, and leaves a program", async () => {
  const transpiler = new Bun.Transpiler({ loader: "ts" });
  for (const { bug, file, before, after } of MUTATIONS) {
    const text = await Bun.file(join(import.meta.dir, "../..", file)).text();
    expect({ bug, places: text.split(before).length - 1 }).toEqual({ bug, places: 1 });
    expect(() => transpiler.transformSync(text.replace(before, () => after))).not.toThrow();
  }
});
