#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/target/kernels.inc from the registries of kernels of many versions of ONNX Runtime.

Each version of tools/runtime_versions.py is installed into a folder of its own and asked. With
--check nothing is installed or written: the exit code is 1 when the committed file does not say
what the onnxruntime of this environment says.
"""

import argparse
import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from generate_schemas import (
    DTYPE_OF_TENSOR,
    NEWEST_OPSET,
    OLDEST_OPSET,
    Table,
    array,
    dtype_numbers,
    schemas_in_force,
)
from onnx import TensorProto, defs, helper
from runtime_versions import RELEASES, ROOT, environment, minor

OUT = ROOT / "src" / "target" / "kernels.inc"
READER = Path(__file__).resolve().parent / "read_registry.py"
OPEN_END = 2**31 - 1  # the last opset of a kernel that is still in force
PROBED_DTYPES = {"kF32": TensorProto.FLOAT, "kF64": TensorProto.DOUBLE}
OLDEST_IR, NEWEST_IR = 8, 20  # that are asked for

Types = tuple[tuple[str, int], ...]  # type variable, bit i: DType i is allowed; sorted
Kernel = tuple[str, int, Types]  # op, the opset of its schema


class Registry:
    """What one version of ONNX Runtime says about its schemas and its kernels for the CPU."""

    def __init__(self, env: dict[str, str], models: dict[str, bytes] | None = None) -> None:
        given = models or PROBES
        probes = {name: base64.b64encode(model).decode() for name, model in given.items()}
        run = subprocess.run(
            [sys.executable, READER], env=env, input=json.dumps(probes), text=True,
            stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(run.stdout)
        self.version = minor(answer["version"])
        self.loaded = set(answer["loads"])
        self._since: dict[str, list[int]] = {}
        for op, since in answer["schemas"]:
            self._since.setdefault(op, []).append(since)
        self._kernels: dict[str, list[tuple[int, int, dict[str, list[str]]]]] = {}
        for op, first, last, types in answer["kernels"]:
            self._kernels.setdefault(op, []).append((first, last, types))

    @property
    def newest_opset(self) -> int:
        opsets = range(OLDEST_OPSET, NEWEST_OPSET + 1)
        return max(opset for opset in opsets if f"opset {opset}" in self.loaded)

    @property
    def newest_ir(self) -> int:
        return max(ir for ir in range(OLDEST_IR, NEWEST_IR + 1) if f"IR {ir}" in self.loaded)

    def kernels(self, schema: defs.OpSchema) -> list[Types]:
        """What runs a node of this schema: kernels, or the function body of the op."""
        opset = schema.since_version
        known = [since for since in self._since.get(schema.name, ()) if since <= opset]
        if not known or opset > self.newest_opset:
            return []
        variables = {constraint.type_param_str for constraint in schema.type_constraints}
        rows = []
        for first, last, types in self._kernels.get(schema.name, ()):
            if serves(first, last, max(known)):
                rows.append({v: mask(names) for v, names in types.items() if v in variables})
        merged_rows = merged(rows) or self._function_kernels(schema)
        return [tuple(sorted(row.items())) for row in merged_rows]

    def _function_kernels(self, schema: defs.OpSchema) -> list[dict[str, int]]:
        dtypes = sum(
            1 << NUMBERS[name] for name in PROBED_DTYPES if probe_name(schema, name) in self.loaded
        )
        return [{schema.type_constraints[0].type_param_str: dtypes}] if dtypes else []


def serves(first: int, last: int, since: int) -> bool:
    """Whether ONNX Runtime takes a kernel of these opsets for a schema.

    A kernel that is still in force serves the schema it was written for and no later one.
    """
    return first == since or (first < since <= last and last != OPEN_END)


def mask(types: Iterable[str]) -> int:
    names = (DTYPE_OF_TENSOR.get(text) for text in types)
    return sum({1 << NUMBERS[name] for name in names if name is not None})


def merged(rows: list[dict[str, int]]) -> list[dict[str, int]]:
    """The same combinations of dtypes in fewer rows: rows that differ in one variable are one."""
    result: list[dict[str, int]] = []
    for row in rows:
        for other in result:
            differing = [v for v in row if row[v] != other.get(v)]
            if row.keys() == other.keys() and len(differing) <= 1:
                for variable in differing:
                    other[variable] |= row[variable]
                break
        else:
            result.append(dict(row))
    return result


# --- models that a version loads or does not


def has_body(schema: defs.OpSchema) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def ops_with_bodies() -> list[str]:
    return sorted({schema.name for schema in schemas_in_force() if has_body(schema)})


def has_simple_body(schema: defs.OpSchema) -> bool:
    """Whether an op of one type variable is a function that loads() can try.

    Only f32 and f64 are asked for: a body in f16 runs too, with casts around each of its nodes.
    """
    required = [attr for attr in schema.attributes.values() if attr.required]
    are_counts = all(attr.type == defs.OpSchema.AttrType.INT for attr in required)
    return has_body(schema) and are_counts and len(schema.type_constraints) == 1


def probe_name(schema: defs.OpSchema, dtype: str) -> str:
    return f"{schema.name} {schema.since_version} {dtype}"


def probe(op: str, dtype: int, opset: int, ir: int = OLDEST_IR) -> bytes:
    schema = defs.get_schema(op, opset)
    inputs = [f"x{i}" for i in range(schema.min_input)]
    counts = {attr.name: 1 for attr in schema.attributes.values() if attr.required}
    shape = None if counts else ["N"]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, ["y"], **counts)],
        "probe",
        [helper.make_tensor_value_info(name, dtype, shape) for name in inputs],
        [helper.make_tensor_value_info("y", dtype, shape)],
    )
    opsets = [helper.make_opsetid("", opset)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=ir).SerializeToString()
    return model


def probes() -> dict[str, bytes]:
    models = {}
    for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1):
        models[f"opset {opset}"] = probe("Abs", TensorProto.FLOAT, opset)
    for ir in range(OLDEST_IR, NEWEST_IR + 1):
        models[f"IR {ir}"] = probe("Abs", TensorProto.FLOAT, OLDEST_OPSET, ir)
    for schema in filter(has_simple_body, schemas_in_force()):
        for name, dtype in PROBED_DTYPES.items():
            opset = max(schema.since_version, OLDEST_OPSET)
            models[probe_name(schema, name)] = probe(schema.name, dtype, opset)
    return models


# --- the table

HEADER = """\
// SPDX-License-Identifier: Apache-2.0
// Generated by tools/generate_kernels.py from the kernel registries of onnxruntime {} to {}. Do
// not edit.
"""
SLICES = """\
constexpr std::span<const onnx::TypeConstraint> {0}(std::size_t first, std::size_t count) {{
  return std::span(k{1}Types).subspan(first, count);
}}
"""


def number(version: str) -> int:
    """131 for 1.31."""
    major, minor_number = version.split(".")
    return 100 * int(major) + int(minor_number)


def spans(versions: list[str], present: list[bool]) -> Iterator[tuple[int, str]]:
    """First and last version of each stretch; one that reaches the newest version has no end."""
    first = None
    for version, is_there, is_next in zip(versions, present, [*present[1:], False], strict=True):
        if is_there and first is None:
            first = number(version)
        if first is not None and not is_next:
            yield first, "kOpen" if version == versions[-1] else str(number(version))
            first = None


def rows_text(name: str, versions: list[str], rows_of: dict[Kernel, list[bool]]) -> list[str]:
    """The table of a runtime, from the versions that have each kernel."""
    types = Table()
    rows = []
    slices = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + "_types"
    for (op, since, kernel), present in rows_of.items():
        slice_ = types.slice_of(f'{{"{v}", 0x{dtypes:08x}}}' for v, dtypes in kernel)
        for first, last in spans(versions, present):
            rows.append(f'{{"{op}", {since}, {first}, {last}, {slices}({slice_})}}')
    return [
        array("onnx::TypeConstraint", f"k{name}Types", types.rows),
        SLICES.format(slices, name),
        "// Sorted by op, then by the opset of the schema.",
        array("KernelRow", f"k{name}Rows", rows),
    ]


def kernels_text(registries: list[Registry]) -> str:
    versions = [registry.version for registry in registries]
    releases = [f"{{{number(r.version)}, {r.newest_opset}, {r.newest_ir}}}" for r in registries]
    rows_of: dict[Kernel, list[bool]] = {}
    for schema in schemas_in_force():
        found = [registry.kernels(schema) for registry in registries]
        for types in dict.fromkeys(kernel for of_version in found for kernel in of_version):
            key = (schema.name, schema.since_version, types)
            rows_of[key] = [types in of_version for of_version in found]
    return "\n".join(
        [
            HEADER.format(versions[0], versions[-1]),
            "// Oldest first.",
            array("Release", "kReleases", releases),
            *rows_text("Kernel", versions, rows_of),
            "// Ops that ONNX defines by others.",
            array("std::string_view", "kBodies", [f'"{op}"' for op in ops_with_bodies()]),
        ]
    )


def committed_kernels(text: str, version: int) -> set[Kernel]:
    """The kernels that a generated file has for one version."""
    types = [(v, int(bits, 16)) for v, bits in re.findall(r'\{"(\w+)", (0x\w+)\}', text)]
    row = re.compile(r'\{"(\w+)", (\d+), (\d+), (\w+),\s+kernel_types\((\d+),\s+(\d+)\)\}')
    kernels = set()
    for op, since, first, last, start, count in row.findall(text):
        if int(first) <= version and (last == "kOpen" or version <= int(last)):
            of_kernel = types[int(start) : int(start) + int(count)]
            kernels.add((op, int(since), tuple(of_kernel)))
    return kernels


def check() -> str:
    """What is wrong with the committed file; "" if nothing is."""
    installed = Registry(dict(os.environ))
    if installed.version not in RELEASES:
        return f"tools/runtime_versions.py does not list onnxruntime {installed.version}"
    text = OUT.read_text() if OUT.exists() else ""
    schemas = schemas_in_force()
    have = {(s.name, s.since_version, types) for s in schemas for types in installed.kernels(s)}
    version = number(installed.version)
    release = f"{{{version}, {installed.newest_opset}, {installed.newest_ir}}}"
    if have == committed_kernels(text, version) and release in text:
        return ""
    return "src/target/kernels.inc is stale: run tools/generate_kernels.py"


NUMBERS = dtype_numbers()
PROBES = probes()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when stale")
    if parser.parse_args().check:
        problem = check()
        if problem:
            print(problem, file=sys.stderr)
        return 1 if problem else 0
    OUT.write_text(
        kernels_text(
            [Registry(environment("onnxruntime", release)) for release in RELEASES.values()]
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
