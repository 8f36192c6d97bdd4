import { expect, test } from "bun:test";
import { join } from "node:path";
import { YAML } from "bun";

const deploy = join(import.meta.dir, "../../deploy");

test("the IAM policy allows what the service asks for, on one table, and nothing else", async () => {
  const policy = await Bun.file(join(deploy, "iam-policy.json")).json();
  const statements: { Effect: string; Action: string[]; Resource: string }[] = policy.Statement;
  expect(statements.map(({ Effect }) => Effect)).toEqual(["Allow", "Allow"]);
  expect(statements.flatMap(({ Action }) => Action).sort()).toEqual([
    "dynamodb:DescribeTable",
    "dynamodb:DescribeTimeToLive",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
  ]);
  for (const { Resource } of statements) {
    expect(Resource).toMatch(/^arn:aws:dynamodb:\*:\d{12}:table\/[\w.-]+$/);
  }
});

test("the CloudFormation template makes a table of the key and TTL that the service needs", async () => {
  const template = YAML.parse(await Bun.file(join(deploy, "dynamodb-table.yaml")).text());
  expect(template).toMatchObject({
    Resources: {
      Table: {
        Type: "AWS::DynamoDB::GlobalTable",
        DeletionPolicy: "Retain",
        Properties: {
          BillingMode: "PAY_PER_REQUEST",
          AttributeDefinitions: [
            { AttributeName: "pk", AttributeType: "S" },
            { AttributeName: "sk", AttributeType: "S" },
          ],
          KeySchema: [
            { AttributeName: "pk", KeyType: "HASH" },
            { AttributeName: "sk", KeyType: "RANGE" },
          ],
          TimeToLiveSpecification: { AttributeName: "expires_at", Enabled: true },
        },
      },
    },
  });
});
