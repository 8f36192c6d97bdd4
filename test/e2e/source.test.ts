import { targetSuite } from "./targets.ts";

await targetSuite("the source", [process.execPath, "src/main.ts"]);
