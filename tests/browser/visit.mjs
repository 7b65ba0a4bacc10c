// SPDX-License-Identifier: Apache-2.0
// Chromium for the tests: serves a folder, opens pages of it, and remembers what went wrong in them.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";

// Packages come from $NODE_PATH, which import does not look at.
export const require = createRequire(join(process.env.NODE_PATH, "package.json"));
const { chromium } = require(join(process.env.NODE_PATH, "playwright-core"));

const PATIENCE = 120000; // milliseconds; the machine may be busy

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".mjs": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** The server, at an address that the system chooses. */
async function serve(folder) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
    const name = path.endsWith("/") ? `${path}index.html` : path;
    try {
      const body = await readFile(join(folder, name));
      response.writeHead(200, {
        "Content-Type": TYPES[extname(name)] ?? "application/octet-stream",
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

/** Calls `visit(page, address, problems)`; `problems` are console errors and foreign requests. */
export async function withPage(folder, options, visit) {
  const server = await serve(folder);
  const address = `http://127.0.0.1:${server.address().port}`;
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu"],
    timeout: PATIENCE,
  });
  const problems = [];
  try {
    const page = await browser.newPage(options);
    page.setDefaultTimeout(PATIENCE);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) problems.push(message.text());
    });
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => {
      const url = request.url();
      const isOurs = url.startsWith(address) || /^(data|blob):/.test(url);
      if (!isOurs) problems.push(`request to ${url}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400) problems.push(`${response.status()} for ${response.url()}`);
    });
    await visit(page, address, problems);
  } finally {
    await browser.close();
    server.close();
  }
}
