import { type Flag, flags, headings } from "./flags.ts";

const WIDTH = 100;
const INDENT = "  ";

/** The text of `--help`. */
export function helpText(name: string, version: string, description: string): string {
  const sections = Object.entries(headings).map(([heading, { title }]) => {
    const rows = Object.entries(flags)
      .filter(([, flag]) => flag.heading === heading)
      .map(([flagName, flag]): Row => [`--${flagName} ${flag.value}`, sentence(flag)]);
    return { title, rows: heading === "all" ? [...rows, ...COMMON] : rows };
  });
  const left = Math.max(...sections.flatMap(({ rows }) => rows.map(([label]) => label.length))) + 2;
  const body = sections.map(({ title, rows }) =>
    [`${title}:`, ...rows.flatMap((row) => layOut(row, left))].join("\n"),
  );
  return [
    `${name} ${version}`,
    wrap(description, WIDTH).join("\n"),
    `Usage: ${name} [FLAGS]`,
    ...body,
  ].join("\n\n");
}

type Row = readonly [label: string, text: string];

const COMMON: readonly Row[] = [
  ["-h, --help", "Print this help"],
  ["-V, --version", "Print the version"],
];

/** Holds two words together on a line. */
const NO_BREAK_SPACE = "\u00a0";

function sentence(flag: Flag<unknown>): string {
  if (flag.default === undefined) return flag.help;
  return `${flag.help} [default:${NO_BREAK_SPACE}${flag.default}]`;
}

function layOut([label, text]: Row, left: number): string[] {
  const lines = wrap(text, WIDTH - INDENT.length - left);
  return lines.map((line, index) => `${INDENT}${(index === 0 ? label : "").padEnd(left)}${line}`);
}

/** Breaks a text between words into lines of at most `width` characters. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line].map((text) => text.replaceAll(NO_BREAK_SPACE, " "));
}
