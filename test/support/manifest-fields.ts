import * as models from "@kubernetes/client-node";
import type { Manifest } from "./kustomize.ts";

/** The fields of an object that Kubernetes does not know, or whose value has another type there. */
export function strangeFields(object: Manifest): string[] {
  return strangeIn(object, `V1${object.kind}`, object.kind);
}

const modelsByName: Readonly<Record<string, unknown>> = models;

function strangeIn(value: unknown, type: string, path: string): string[] {
  const [, member] = /^Array<(.*)>$/.exec(type) ?? /^{ \[key: string\]: (.*); }$/.exec(type) ?? [];
  if (member !== undefined) {
    if (Array.isArray(value) !== type.startsWith("Array")) return [path];
    return entriesOf(value).flatMap(([key, each]) => strangeIn(each, member, `${path}.${key}`));
  }
  const fields = fieldsOf(modelsByName[type]);
  if (fields !== undefined) {
    return entriesOf(value).flatMap(([key, each]) => {
      const field = fields.find(({ baseName }) => baseName === key);
      return field === undefined
        ? [`${path}.${key}`]
        : strangeIn(each, field.type, `${path}.${key}`);
    });
  }
  if (type === "IntOrString") return ["string", "number"].includes(typeof value) ? [] : [path];
  return typeof value === type ? [] : [path];
}

function entriesOf(value: unknown): [string, unknown][] {
  return Object.entries(value ?? {});
}

/** The fields of a model of the Kubernetes API; undefined for what is none. */
function fieldsOf(
  model: unknown,
): readonly { readonly baseName: string; readonly type: string }[] | undefined {
  if (typeof model !== "function" || !("getAttributeTypeMap" in model)) return undefined;
  const { getAttributeTypeMap } = model;
  return typeof getAttributeTypeMap === "function" ? getAttributeTypeMap.call(model) : undefined;
}
