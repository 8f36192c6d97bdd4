/**
 * Becomes a `runc` that runs a container: its signals go to the container's process 1, whose exit
 * status becomes its own.
 *
 * Arguments: a bundle, the folder of runc's own state, and what is added to the bundle's command. The
 * environment is added to the bundle's.
 */
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";

const [bundle = "", state = "", ...args] = process.argv.slice(2);
const { PATH, HOME, ...env } = process.env;

for (const value of [...args, ...Object.values(env)]) if (value !== undefined) open(value);

const own = mkdtempSync(join(dirname(bundle), "container-"));
const config = JSON.parse(readFileSync(join(bundle, "config.json"), "utf8"));
config.process.args.push(...args);
config.process.env.push(...Object.entries(env).map(([name, value]) => `${name}=${value}`));
config.root.path = join(bundle, "rootfs");
writeFileSync(join(own, "config.json"), JSON.stringify(config));

const runc = Bun.which("runc") ?? "runc";
process.execve?.(runc, [runc, "--root", state, "run", "--bundle", own, basename(own)], process.env);

/** Lets others read a file of the tests, and those beside it, as a kubelet does with a Secret's. */
function open(path: string): void {
  const folder = dirname(path);
  if (!folder.startsWith(`${tmpdir()}/`)) return;
  chmodSync(folder, 0o755);
  for (const name of readdirSync(folder)) {
    const each = join(folder, name);
    if (statSync(each).isFile()) chmodSync(each, 0o644);
  }
}
