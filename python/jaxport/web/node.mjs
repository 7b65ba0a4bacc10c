// SPDX-License-Identifier: Apache-2.0
// node node.mjs NODE_MODULES MODEL < inputs.json > outputs.json
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { infer } from "./infer.mjs";

const [nodeModules, model] = process.argv.slice(2);
const ort = createRequire(nodeModules + "/")("onnxruntime-web");
ort.env.wasm.numThreads = 1;
const outputs = await infer(ort, readFileSync(model), JSON.parse(readFileSync(0, "utf8")));
process.stdout.write(JSON.stringify(outputs));
