import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { name } from "../../../package.json" with { type: "json" };
import type { UnpackedImage } from "../../support/container.ts";
import { NOBODY } from "../../support/empty-root.ts";
import type { Service } from "../../support/service.ts";

/** Under what a container of the image runs: what the other tests stand on. */
export function containerTests(image: UnpackedImage, service: Service): void {
  const statusOf = (pid: number) => {
    const lines = readFileSync(`/proc/${pid}/status`, "utf8").split("\n");
    return Object.fromEntries(lines.map((line) => line.split(/:\s+/, 2)));
  };

  test("the image holds the file and nothing else", () => {
    expect(image.files).toEqual([name]);
  });

  test("the service is process 1, of a user without any rights, on a root that can't be written", () => {
    // Any thread of runc may have made it.
    const [pid = 0] = readdirSync(`/proc/${service.pid}/task`).flatMap((thread) => {
      const children = readFileSync(`/proc/${service.pid}/task/${thread}/children`, "utf8");
      return children.trim() === "" ? [] : [Number(children)];
    });
    const nobody = Array(4).fill(NOBODY).join("\t");
    expect(statusOf(pid)).toMatchObject({
      NSpid: `${pid}\t1`,
      Uid: nobody,
      Gid: nobody,
      CapPrm: "0000000000000000",
      CapEff: "0000000000000000",
      CapBnd: "0000000000000000",
      NoNewPrivs: "1",
      // By a filter of system calls.
      Seccomp: "2",
    });
    const [, options] =
      /^\S+ \S+ \S+ \S+ \/ (\S+)/m.exec(readFileSync(`/proc/${pid}/mountinfo`, "utf8")) ?? [];
    expect(options?.split(",")).toContain("ro");
  });
}
