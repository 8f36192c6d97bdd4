import { readFileSync } from "node:fs";

/** A page that is one file, and what a Content-Security-Policy knows its parts by. */
export interface Bundle {
  readonly html: string;
  /** `sha256-…` of the text of its only script. */
  readonly scriptHash: string;
  /** `sha256-…` of the text of its only style sheet. */
  readonly styleHash: string;
}

/**
 * The page with its style sheet and its script inside. A macro: it runs when the program is bundled
 * (from source, when the module that calls it is loaded), and only its result is in the program.
 */
export function bundle(): Bundle {
  const style = readFileSync(`${import.meta.dir}/page.css`, "utf8");
  const script = clientScript();
  const withStyle = inline(
    readFileSync(`${import.meta.dir}/page.html`, "utf8"),
    '<link rel="stylesheet" href="page.css">',
    `<style>${style}</style>`,
  );
  return {
    html: inline(withStyle, '<script src="client/main.ts"></script>', `<script>${script}</script>`),
    scriptHash: sha256(script),
    styleHash: sha256(style),
  };
}

function clientScript(): string {
  // By the command, since `Bun.build` can't be called while the bundler waits for a macro.
  const built = Bun.spawnSync([
    process.execPath,
    "build",
    `${import.meta.dir}/client/main.ts`,
    "--target=browser",
    "--format=iife",
    "--minify-syntax",
    "--minify-whitespace",
  ]);
  if (!built.success) throw new Error(`bundling the page failed: ${built.stderr}`);
  const script = built.stdout.toString();
  // It would end the element that the script stands in.
  if (/<\/script/i.test(script)) throw new Error("the script of the page has </script in it");
  return script;
}

function inline(html: string, reference: string, element: string): string {
  if (!html.includes(reference)) throw new Error(`page.html lacks ${reference}`);
  return html.replace(reference, () => element);
}

function sha256(text: string): string {
  return `sha256-${Bun.SHA256.hash(text, "base64")}`;
}
