# SPDX-License-Identifier: Apache-2.0
"""python -m jaxport.migrate script.py: what changes when a script uses jaxport for jax2onnx."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jaxport

_OLD = "jax2onnx"
# Where the names of jax2onnx are here; a module that is not listed has no counterpart.
_MODULES = {
    _OLD: "jaxport",
    f"{_OLD}.user_interface": "jaxport",
    f"{_OLD}.plugins._post_check_onnx_graph": "jaxport.testing",
}
_NO_PLUGINS = (
    "has no counterpart: jaxport converts primitives without plugins; "
    "jaxport.register_lowering and jaxport.register_decomposition take one of your own"
)
# What a call means here where it is not the same: (function, argument, value) and a remark.
_OTHER_MEANING = (
    ("expect_graph", "mode", "any", "means the paths alone: must_absent holds all the same"),
)


@dataclasses.dataclass(frozen=True)
class Finding:
    """One place of a script.

    Attributes:
        line: its number, from 1.
        text: its first line.
        remarks: what is not the same; empty where only the import changes.
    """

    line: int
    text: str
    remarks: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class _Edit:
    """Text between two places of a file, and what takes its place."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class Script:
    """A Python file: what of it changes, and the file with its imports changed.

    Attributes:
        imports: the imports of jax2onnx.
        calls: the calls of its functions, decorators included.
        rewritten: the text with imports of jaxport wherever there is a counterpart.
    """

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines(keepends=True)
        self._tree = ast.parse(text)
        self._functions: dict[str, tuple[str, str]] = {}  # local name: (module of ours, name)
        self._packages: dict[str, str] = {}  # local name: module of theirs
        self._edits: list[_Edit] = []
        self.imports = [found for node in ast.walk(self._tree) for found in self._import(node)]
        uses = (found for node in ast.walk(self._tree) for found in self._use(node))
        self.calls = sorted(uses, key=lambda found: found.line)
        self.rewritten = self._edited()

    def _finding(self, node: Any, remarks: Sequence[str] = ()) -> Finding:
        line = self._lines[node.lineno - 1].strip()
        return Finding(node.lineno, line, tuple(remarks))

    # --- imports

    def _import(self, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, ast.ImportFrom) and _is_theirs(node.module or "") and not node.level:
            yield self._finding(node, list(self._import_from(node)))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_theirs(alias.name):
                    yield self._finding(node, list(self._import_package(node, alias)))

    def _import_from(self, node: ast.ImportFrom) -> Iterator[str]:
        assert node.module is not None
        home = _MODULES.get(node.module)
        kept = []
        for alias in node.names:
            if home is not None and _has(home, alias.name):
                self._functions[alias.asname or alias.name] = (home, alias.name)
            else:
                kept.append(alias)
                yield f"{alias.name} {_missing(node.module)}"
        if kept == node.names:
            return
        assert home is not None
        if not kept:  # the names stay as they are written, with their comments
            line = self._lines[node.lineno - 1].encode()
            start = line.index(node.module.encode(), node.col_offset)
            end = start + len(node.module)
            self._edits.append(_Edit((node.lineno, start), (node.lineno, end), home))
            return
        moved = [alias for alias in node.names if alias not in kept]
        statements = (ast.ImportFrom(home, moved, 0), ast.ImportFrom(node.module, kept, 0))
        text = ("\n" + " " * node.col_offset).join(map(ast.unparse, statements))
        self._edits.append(_Edit((node.lineno, node.col_offset), _end(node), text))

    def _import_package(self, node: ast.Import, alias: ast.alias) -> Iterator[str]:
        local = alias.asname or alias.name.split(".")[0]
        self._packages[local] = alias.name if alias.asname else _OLD
        uses = self._attributes_of(local)
        missing = [name for name in uses if not _has(_MODULES.get(alias.name, ""), name)]
        yield from (f"{name} {_missing(alias.name)}" for name in dict.fromkeys(missing))
        if missing or alias.name not in _MODULES or (not alias.asname and "." in alias.name):
            return
        home = _MODULES[alias.name]
        self._edits.append(
            _Edit(
                (alias.lineno, alias.col_offset),
                (alias.lineno, alias.col_offset + len(alias.name)),
                home,
            )
        )
        if not alias.asname:
            for name in ast.walk(self._tree):
                if isinstance(name, ast.Name) and name.id == local:
                    self._edits.append(_Edit((name.lineno, name.col_offset), _end(name), home))

    def _attributes_of(self, local: str) -> list[str]:
        return [
            node.attr
            for node in ast.walk(self._tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == local
        ]

    # --- uses

    def _use(self, node: ast.AST) -> Iterator[Finding]:
        if isinstance(node, ast.Call):
            target = self._target(node.func)
            if target:
                yield self._finding(node, list(_remarks(*target, node)))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                target = None if isinstance(decorator, ast.Call) else self._target(decorator)
                if target:
                    yield self._finding(decorator)

    def _target(self, node: ast.expr) -> tuple[str, str] | None:
        """The module of ours and the name of a function that an expression stands for."""
        if isinstance(node, ast.Name):
            return self._functions.get(node.id)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            package = self._packages.get(node.value.id)
            home = _MODULES.get(package) if package else None
            return (home, node.attr) if home else None
        return None

    # --- the new text

    def _edited(self) -> str:
        lines = list(self._lines)
        for edit in sorted(self._edits, key=lambda edit: edit.start, reverse=True):
            (first, start), (last, end) = edit.start, edit.end
            head = lines[first - 1].encode()[:start].decode()
            tail = lines[last - 1].encode()[end:].decode()
            lines[first - 1 : last] = [head + edit.text + tail]
        return "".join(lines)


def _is_theirs(module: str) -> bool:
    return module == _OLD or module.startswith(_OLD + ".")


def _has(home: str, name: str) -> bool:
    if home == "jaxport":
        return name in jaxport.__all__
    return home == "jaxport.testing" and name == "expect_graph"


def _missing(module: str) -> str:
    return _NO_PLUGINS if module.startswith(f"{_OLD}.plugins") else "has no counterpart"


def _end(node: Any) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


def _remarks(home: str, name: str, call: ast.Call) -> Iterator[str]:
    if not _has(home, name):
        yield f"{name} has no counterpart"
        return
    module = jaxport.testing if home == "jaxport.testing" else jaxport
    parameters = inspect.signature(getattr(module, name)).parameters
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg not in parameters:
            yield f"{keyword.arg}= has no counterpart"
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        for function, argument, constant, remark in _OTHER_MEANING:
            if (function, argument, constant) == (name, keyword.arg, value):
                yield f"{argument}={constant!r} {remark}"
    positional = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    if len(call.args) > len(positional):
        yield f"only the first {len(positional)} arguments may be given by position"


def _report(path: Path, script: Script) -> bool:
    """Prints what changes; returns whether something else than imports does."""
    for found in script.imports:
        print(f"{path}:{found.line}: {found.text}")
        for remark in found.remarks:
            print(f"    {remark}")
    for found in script.calls:
        print(f"{path}:{found.line}: {found.text}")
        for remark in found.remarks or ("nothing but the import changes",):
            print(f"    {remark}")
    changed = [found for found in (*script.imports, *script.calls) if found.remarks]
    print(
        f"{path}: {len(script.imports)} imports, {len(script.calls)} calls, "
        f"{len(changed)} to look at"
    )
    return bool(changed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: nothing but imports changes. 1: something else does. 2: an error."""
    parser = argparse.ArgumentParser(prog="python -m jaxport.migrate", description=__doc__)
    parser.add_argument("scripts", nargs="+", type=Path, help="Python files that use jax2onnx")
    parser.add_argument("--write", action="store_true", help="change the imports in the files")
    options = parser.parse_args(arguments)
    code = 0
    for path in options.scripts:
        try:
            script = Script(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            print(f"{path}: cannot be read: {error}", file=sys.stderr)
            code = 2
            continue
        code = max(code, int(_report(path, script)))
        if options.write:
            path.write_text(script.rewritten, encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
