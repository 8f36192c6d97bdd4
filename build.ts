/** Makes `dist/global-discovery-service`, one executable file. */
import { Glob } from "bun";

/** How a program is made into the executable `outfile`. */
export function buildSwitches(outfile: string) {
  return {
    compile: {
      outfile,
      // Whatever lies in the directory that the service is started in must not change what it does.
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
    },
    format: "esm",
    // What a mode doesn't use stays out of its start: --help loads neither the server nor the schema.
    splitting: true,
    // A fifth of the start would be parsing.
    bytecode: true,
    // Names stay, for stack traces.
    minify: { syntax: true, whitespace: true, identifiers: false },
    sourcemap: "inline",
    throw: false,
  } as const;
}

if (import.meta.main) {
  const outfile = "dist/global-discovery-service";
  const built = await Bun.build({ ...buildSwitches(outfile), entrypoints: ["src/main.ts"] });
  if (!built.success) {
    for (const log of built.logs) console.error(String(log));
    process.exit(1);
  }
  // The file holds its source maps; Bun leaves copies beside it.
  for (const map of new Glob("*.map").scanSync("dist")) await Bun.file(`dist/${map}`).delete();
  const megabytes = Bun.file(outfile).size / 1e6;
  console.log(`${outfile}: ${megabytes.toFixed(1)} MB`);
}
