import { openAwsTable } from "../../src/registrations/dynamodb/aws-table.ts";
import type { RegistrationTable } from "../../src/registrations/dynamodb/table.ts";

/** What is answered to an operation, such as `Query`. */
export type Answers = (operation: string) => { readonly status: number; readonly body: string };

/** The table `pools` of us-west-2, for which a server of this process answers as it is told. */
export async function openAnsweredTable(
  answers: Answers,
): Promise<Disposable & { readonly table: RegistrationTable }> {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      await request.bytes();
      const operation = request.headers.get("x-amz-target")?.split(".")[1] ?? "";
      const { status, body } = answers(operation);
      const headers = { "Content-Type": "application/x-amz-json-1.0" };
      return new Response(body, { status, headers });
    },
  });
  const before = { ...process.env };
  // The SDK reads these when it is made and with its first request; one attempt is enough.
  const environment = {
    AWS_ACCESS_KEY_ID: "AKIATEST",
    AWS_SECRET_ACCESS_KEY: "not-a-secret",
    AWS_MAX_ATTEMPTS: "1",
  };
  Object.assign(process.env, environment);
  const { table } = await openAwsTable({
    tableName: "pools",
    region: "us-west-2",
    endpointUrl: server.url.origin,
  });
  return {
    table,
    [Symbol.dispose]() {
      table.close();
      void server.stop(true);
      for (const name of Object.keys(environment)) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    },
  };
}
