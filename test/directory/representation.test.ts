import { expect, test } from "bun:test";
import { type Coding, Representation } from "../../src/directory/representation.ts";

const representation = new Representation("héllo ".repeat(1000));

test("each coding is the same content", async () => {
  const bytes = Buffer.from(representation.bytes);
  const coded = (coding: Coding) => representation.in(coding).bytes();
  expect(Buffer.from(Bun.gunzipSync(await coded("gzip")))).toEqual(bytes);
  expect(Bun.zstdDecompressSync(await coded("zstd"))).toEqual(bytes);
  expect(Buffer.from(await coded("identity"))).toEqual(bytes);
});

test("each coding is made once, and has an ETag of its own", () => {
  for (const coding of ["identity", "gzip", "zstd"] as const) {
    expect(representation.in(coding)).toBe(representation.in(coding));
  }
  const { hash } = representation;
  expect(representation.etags.identity).toBe(`"${hash}"`);
  expect(representation.etags.gzip).toBe(`"${hash}-gzip"`);
  expect(representation.etags.zstd).toBe(`"${hash}-zstd"`);
});

test("the hash is that of the bytes: the first 128 bits of their SHA-256", () => {
  expect(new Representation("").hash).toBe("e3b0c44298fc1c149afbf4c8996fb924");
});
