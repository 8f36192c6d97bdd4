import "./arktype-setup.ts";
import { scope } from "arktype";
import { rules } from "./rules.ts";

// Other than arktype's own types, these are compiled: compiled-schema.ts needs the code.
const { type } = scope({}, { jitless: false });

const text = type("string").narrow(rules.isText);
const label = text.narrow(rules.isLabel);
const keyPart = text.narrow(rules.isKeyPart);
const optionalText = type("unknown").narrow(rules.isOptionalText);
const frontend = text.narrow(rules.isFrontend);

const capacity = type({ sku: label, workers: type("number").narrow(rules.isWorkers) });

/** What each list of a registration holds. */
export const members = { capabilities: label, frontends: frontend, capacity };

/** The wire format of a registration once `fillIn` has put in what may be left out. */
export const registrationBody = type({
  key: type({ cluster_id: keyPart, namespace: keyPart, dgd_name: keyPart }).narrow(rules.isKey),
  location: { region: label, availability_zone: optionalText, datacenter: optionalText },
  model: label,
  capabilities: members.capabilities.array(),
  frontends: members.frontends.array(),
  capacity: members.capacity.array(),
});

/** What the schema allows. */
export type RegistrationBody = typeof registrationBody.infer;
