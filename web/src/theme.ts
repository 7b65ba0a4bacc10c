// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, until somebody says otherwise.

const KEY = "jaxport-theme";

export function startTheme(): void {
  const wanted = stored();
  if (wanted) document.documentElement.dataset.theme = wanted;
}

export function toggleTheme(): void {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem(KEY, root.dataset.theme);
  } catch {
    // A page in a sandbox, such as that of a notebook, has no storage.
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
