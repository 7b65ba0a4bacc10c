// SPDX-License-Identifier: Apache-2.0
import js from "@eslint/js";
import tseslint from "typescript-eslint";

const named = (...names) => Object.fromEntries(names.map((name) => [name, "readonly"]));
const browser = named(
  "URL",
  "addEventListener",
  "atob",
  "btoa",
  "console",
  "document",
  "getComputedStyle",
  "localStorage",
  "performance",
  "window",
);

export default tseslint.config(
  { ignores: ["**/dist", "**/node_modules"] },
  js.configs.recommended,
  tseslint.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: {
      parserOptions: { project: "./tsconfig.json", tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      eqeqeq: "error",
      "prefer-const": "error",
      // node:test waits for the tests that a file declares.
      "@typescript-eslint/no-floating-promises": [
        "error",
        {
          allowForKnownSafeCalls: [
            { from: "package", name: ["test", "before", "after"], package: "node:test" },
          ],
        },
      ],
    },
  },
  { files: ["**/*.{js,mjs}"], languageOptions: { globals: browser } },
  // What Node.js runs; the tests hand functions to the browser, too.
  { files: ["**/*.mjs"], languageOptions: { globals: named("Buffer", "process") } },
);
