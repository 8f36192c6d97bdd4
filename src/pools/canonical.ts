import { type Capacity, compareText, type Registration } from "./pool.ts";

/**
 * The fields in which two registrations of one pool differ; none when they are the same
 * registration. Lists are the same when they hold the same members, each as often, in any order.
 */
export function differences(a: Registration, b: Registration): string[] {
  const fields: string[] = [];
  if (a === b) return fields;
  if (a.location.region !== b.location.region) fields.push("location.region");
  if (a.location.availability_zone !== b.location.availability_zone) {
    fields.push("location.availability_zone");
  }
  if (a.location.datacenter !== b.location.datacenter) fields.push("location.datacenter");
  if (a.model !== b.model) fields.push("model");
  if (!sameMembers(a.capabilities, b.capabilities)) fields.push("capabilities");
  if (!sameMembers(a.frontends, b.frontends)) fields.push("frontends");
  if (!sameMembers(a.capacity.map(member), b.capacity.map(member))) fields.push("capacity");
  return fields;
}

/** A capacity entry as one string. The number comes first, so that no two entries share one. */
function member(capacity: Capacity): string {
  return `${capacity.workers} ${capacity.sku}`;
}

function sameMembers(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  if (a.every((text, index) => text === b[index])) return true;
  const sorted = b.toSorted(compareText);
  return a.toSorted(compareText).every((text, index) => text === sorted[index]);
}
