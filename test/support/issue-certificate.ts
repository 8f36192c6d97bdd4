import { join } from "node:path";
import { opensslIn } from "./certificates.ts";

/**
 * Makes a certificate that the root in a folder of `makeCertificates` has signed, for a client. One of
 * -1 days has expired.
 *
 * @returns the paths of the certificate and its key
 */
export async function issueCertificate(
  folder: string,
  { subject, days = 2 }: { readonly subject: string; readonly days?: number },
): Promise<{ readonly cert: string; readonly key: string }> {
  const at = (suffix: string) =>
    join(folder, `${subject.replace(/[^A-Za-z0-9]+/g, "-")}.${suffix}`);
  const openssl = opensslIn(folder);
  await openssl(
    ...["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-subj", subject, "-keyout", at("key"), "-out", at("csr")],
  );
  // As real authorities do: it tells them apart where two have the same name.
  await Bun.write(at("ext"), "authorityKeyIdentifier=keyid");
  await openssl(
    ...["x509", "-req", "-in", at("csr"), "-CA", "root.crt", "-CAkey", "root.key"],
    ...["-set_serial", "3", "-days", String(days), "-extfile", at("ext"), "-out", at("crt")],
  );
  return { cert: at("crt"), key: at("key") };
}
