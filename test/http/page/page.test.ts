import { expect, test } from "bun:test";
import { responseOf } from "../../../src/http/answer.ts";
import { pageAnswer } from "../../../src/http/page/page.ts";

function get(headers: Record<string, string> = {}): Response {
  return responseOf(pageAnswer(new Request("http://x/", { headers })));
}

/** The text of the only element of a name. */
function textOf(html: string, name: string): string {
  const found = [...html.matchAll(new RegExp(`<${name}>(.*?)</${name}>`, "gs"))];
  expect(found).toHaveLength(1);
  return found[0]?.[1] ?? "";
}

test("the page is one file: its script and its style are in it", async () => {
  const html = await get().text();
  expect(html).toStartWith("<!doctype html>");
  expect(textOf(html, "script")).toContain("visibilitychange");
  expect(textOf(html, "style")).toContain("prefers-color-scheme");
  expect(html).not.toMatch(/<(link rel="(?!icon)|script[^>]+src|img|iframe|object)/);
  expect(html).not.toMatch(/(src|href)="(https?:)?\/\//);
  // Without one, browsers ask for /favicon.ico.
  expect(html).toMatch(/<link rel="icon" href="data:/);
  expect(html).not.toMatch(/@import|url\(/);
});

test("the policy lets in the page's own script and style by their hashes, and nothing else", async () => {
  const response = get();
  const policy = response.headers.get("content-security-policy") ?? "";
  const directives = new Map(policy.split("; ").map((each) => [each.split(" ", 1)[0], each]));
  const html = await response.text();
  for (const name of ["script", "style"]) {
    const hash = new Bun.CryptoHasher("sha256").update(textOf(html, name)).digest("base64");
    expect(directives.get(`${name}-src`)).toBe(`${name}-src 'sha256-${hash}'`);
  }
  expect(directives.get("default-src")).toBe("default-src 'none'");
  expect(directives.get("connect-src")).toBe("connect-src 'self'");
  expect(directives.get("frame-ancestors")).toBe("frame-ancestors 'none'");
  expect(directives.get("base-uri")).toBe("base-uri 'none'");
  expect(directives.get("form-action")).toBe("form-action 'none'");
  expect(policy).not.toContain("unsafe");
});

test("the page is HTML in UTF-8 that is not guessed at, framed, or told of to others", () => {
  const { headers } = get();
  expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("x-frame-options")).toBe("DENY");
});

test("a browser that has the page is told 304, and asks each time", async () => {
  const { headers } = get();
  expect(headers.get("cache-control")).toBe("no-cache");
  const etag = headers.get("etag") ?? "";
  expect(etag).toMatch(/^"[0-9a-f]+"$/);
  const again = get({ "If-None-Match": etag });
  expect(again.status).toBe(304);
  expect(await again.text()).toBe("");
  expect(again.headers.get("etag")).toBe(etag);
  expect(get({ "If-None-Match": '"another"' }).status).toBe(200);
});

test("the page is compressed for those who take that", async () => {
  const plain = await get().text();
  const response = get({ "Accept-Encoding": "gzip, deflate, br" });
  expect(response.headers.get("content-encoding")).toBe("gzip");
  expect(response.headers.get("vary")).toBe("Accept-Encoding");
  const bytes = new Uint8Array(await response.arrayBuffer());
  expect(new TextDecoder().decode(Bun.gunzipSync(bytes))).toBe(plain);
  expect(bytes.length).toBeLessThan(16_384);
});
