// SPDX-License-Identifier: Apache-2.0
// Builds the page: one HTML file with its script and style inside, and a place for the data.
//   node build.mjs OUTPUT
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2] ?? join(root, "dist", "page.html");

async function bundled(entry) {
  const result = await build({
    entryPoints: [join(root, "src", entry)],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    legalComments: "inline",
    logLevel: "warning",
  });
  return result.outputFiles[0].text;
}

const template = await readFile(join(root, "src", "page.html"), "utf8");
const licence = await readFile(join(root, "node_modules", "@dagrejs", "dagre", "LICENSE"), "utf8");
// A script ends at the first "</script", wherever that stands.
const script = (await bundled("main.ts")).replaceAll("</script", "<\\/script");
const style = await bundled("style.css");
const parts = { "/* style */": style, "/* script */": script, "(licences)": licence.trim() };
let text = template;
// Functions as replacements: the parts hold "$&" and the like.
for (const [mark, part] of Object.entries(parts)) text = text.replace(mark, () => part);
await mkdir(dirname(output), { recursive: true });
await writeFile(output, text);
