// SPDX-License-Identifier: Apache-2.0
// node node.mjs NODE_MODULES: each line of standard input is {model, inputs}, the path of a model
// and what infer.mjs takes; the answer is a line, too.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

import { infer } from "./infer.mjs";

const ort = createRequire(process.argv[2] + "/")("onnxruntime-web");
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";
for await (const line of createInterface({ input: process.stdin })) {
  const { model, inputs } = JSON.parse(line);
  const answer = await infer(ort, "wasm", readFileSync(model), inputs);
  process.stdout.write(JSON.stringify(answer) + "\n");
}
process.exit(0); // threads of ONNX Runtime may still wait
