import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Glob } from "bun";
import { projectRoot } from "./support/service.ts";

const documents = ["README.md", "CHANGELOG.md", ...new Glob("docs/*.md").scanSync(projectRoot)];

/** What a link leads to, by a path from the root; `anchor` is empty where it is a whole document. */
function linksOf(document: string): { path: string; anchor: string }[] {
  const text = readFileSync(join(projectRoot, document), "utf8");
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [file = "", anchor = ""] = target.split("#");
      return { path: file === "" ? document : join(dirname(document), file), anchor };
    });
}

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsOf(document: string): Set<string> {
  const text = readFileSync(join(projectRoot, document), "utf8").replace(/^```.*?^```$/gms, "");
  return new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

describe.each(documents)("%s", (document) => {
  test("has links that lead somewhere", () => {
    const broken = linksOf(document).filter(({ path, anchor }) => {
      if (!existsSync(join(projectRoot, path))) return true;
      return anchor !== "" && !anchorsOf(path).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

test("what to do about each alert is in docs/operations.md", () => {
  const alerts = readFileSync(join(projectRoot, "deploy/monitoring/alerts.yaml"), "utf8");
  const runbooks = [...alerts.matchAll(/runbook: docs\/operations\.md#(\S+)/g)].map(([, to]) => to);
  expect(runbooks.length).toBeGreaterThan(10);
  const anchors = anchorsOf("docs/operations.md");
  expect(runbooks.filter((to = "") => !anchors.has(to))).toEqual([]);
});
