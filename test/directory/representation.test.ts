import { expect, test } from "bun:test";
import { Representation } from "../../src/directory/representation.ts";

const representation = new Representation("héllo ".repeat(1000));

test("each coding is the same content", () => {
  expect(Buffer.from(Bun.gunzipSync(representation.in("gzip")))).toEqual(
    Buffer.from(representation.bytes),
  );
  expect(Buffer.from(Bun.zstdDecompressSync(representation.in("zstd")))).toEqual(
    Buffer.from(representation.bytes),
  );
  expect(representation.in("identity")).toBe(representation.bytes);
});

test("each coding is made once, and has an ETag of its own", () => {
  expect(representation.in("gzip")).toBe(representation.in("gzip"));
  expect(representation.in("zstd")).toBe(representation.in("zstd"));
  const { hash } = representation;
  expect(representation.etags.identity).toBe(`"${hash}"`);
  expect(representation.etags.gzip).toBe(`"${hash}-gzip"`);
  expect(representation.etags.zstd).toBe(`"${hash}-zstd"`);
});

test("the hash is that of the bytes: the first 128 bits of their SHA-256", () => {
  expect(new Representation("").hash).toBe("e3b0c44298fc1c149afbf4c8996fb924");
});
