// SPDX-License-Identifier: Apache-2.0
// Runs the tests of the page: node test.mjs JUNIT
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const compiled = join(root, "dist", "test.mjs");
const files = ["page", "access", "waits"].map((name) => `import "./test/${name}.ts";`);
await build({
  stdin: { contents: files.join("\n"), resolveDir: root, sourcefile: "tests.ts" },
  outfile: compiled,
  bundle: true,
  format: "esm",
  packages: "external",
  platform: "node",
  target: "node18",
  logLevel: "warning",
});
const junit = process.argv[2];
const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
if (junit) reporters.push("--test-reporter=junit", `--test-reporter-destination=${junit}`);
const run = spawnSync(process.execPath, ["--test", ...reporters, compiled], { stdio: "inherit" });
process.exit(run.status ?? 1);
