// SPDX-License-Identifier: Apache-2.0
// node probe_web.mjs NODE_MODULES < probes.json: which models onnxruntime-web loads. Standard input has
// {name: base64}; the answer has what is wrong with each model, null if nothing.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const ort = createRequire(process.argv[2] + "/")("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";
const answer = {};
for (const [name, model] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  try {
    const bytes = Buffer.from(model, "base64");
    const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
    await session.release();
    answer[name] = null;
  } catch (error) {
    answer[name] = String(error?.message ?? error);
  }
}
process.stdout.write(JSON.stringify(answer), () => process.exit(0));
