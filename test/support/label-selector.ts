export type Labels = Readonly<Record<string, string>>;

/** What a label selector picks, in the form that Kubernetes takes: `a,!b,c=d,e!=f,g in (h,i)`. */
export function labelFilter(selector: string): (labels: Labels) => boolean {
  // Not at the commas inside of parentheses.
  const requirements = selector
    .split(/,(?![^(]*\))/)
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .map(requirementOf);
  return (labels) => requirements.every((holds) => holds(labels));
}

function requirementOf(text: string): (labels: Labels) => boolean {
  const [, key = "", negated, list = ""] = /^(\S+)\s+(not)?in\s+\(([^)]*)\)$/.exec(text) ?? [];
  if (key !== "") {
    const values = list.split(",").map((value) => value.trim());
    return (labels) => values.includes(labels[key] ?? MISSING) !== (negated !== undefined);
  }
  const [, name = "", operator, value] = /^(!?[^=!\s]+)\s*(?:(==?|!=)\s*(\S*))?$/.exec(text) ?? [];
  if (name === "") throw new Error(`the fake can't read the selector ${text}`);
  if (operator === undefined) {
    return (labels) => (name.startsWith("!") ? !(name.slice(1) in labels) : name in labels);
  }
  return (labels) => ((labels[name] ?? MISSING) === value) !== (operator === "!=");
}

/** No label has this value. */
const MISSING = "\0";
