/**
 * To be imported as a macro only: while the service is built, or its source is loaded, the schema is
 * made into the text of a function, so that no heartbeat has to load arktype.
 */
import { rules } from "./rules.ts";
import { registrationBody } from "./schema.ts";

// Not in the macro itself: Bun doesn't show the message of what that throws.
const source = compile();

/**
 * The source of a function of `rules` that returns one of a value and of what `Context` in parse.ts
 * is, which tells whether the schema allows the value.
 */
export function compiledSchema(): string {
  return source;
}

/** @throws Error where arktype's code is not of the form that is known here */
function compile(): string {
  const { precompilation, id } = registrationBody.internal;
  if (precompilation === undefined) throw new Error("arktype has not compiled the schema");
  // It is a function without parameters. What that returns has, for each node of the schema, a method
  // that tells whether a value is allowed, and one that collects what is wrong with it.
  const methods: Record<string, unknown> = new Function(`return (${precompilation})()`)();
  const checks = Object.entries(methods)
    .filter(([name]) => name.endsWith("Allows"))
    .map(([, method]) => String(method))
    .join(",\n")
    .replaceAll(/\$ark\.(\w+)/g, (_, name) => `rules.${ruleOf(name)}`);
  const unknown = /\$ark\w*|\bctx\.(?!path\.)\w+|\bthis\.(?!\w+Allows\b)\w+/.exec(checks);
  if (unknown !== null)
    throw new Error(`arktype's code has ${unknown[0]}, which is not known here`);
  return `const checks = {${checks}}; return (json, ctx) => checks.${id}Allows(json, ctx);`;
}

/** The name of the rule that arktype has registered as `name`. */
function ruleOf(name: string): string {
  const registered: unknown = Reflect.get(Reflect.get(globalThis, "$ark"), name);
  const rule = Object.entries(rules).find(([, each]) => each === registered);
  if (rule === undefined) throw new Error(`the schema uses ${name}, which is not in rules.ts`);
  return rule[0];
}
