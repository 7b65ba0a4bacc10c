#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/onnx/schemas.inc and src/onnx/op_names.inc from the schemas of the onnx package.

With --check nothing is written: the exit code is 1 when the committed files are stale.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import onnx
from onnx import defs, helper

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "src" / "onnx"
OLDEST_OPSET, NEWEST_OPSET = 16, 26
# Models of others may be newer than what jaxport writes (kNewestRead in pass/understand.cpp).
NEWEST_READ = 28
# ONNX Runtime loads opset 23 with IR version 10, and so do more runtimes than know version 11.
IR_FLOOR, NEWEST_OPSET_OF_IR_FLOOR = 10, 23
UNBOUNDED = 0xFFFF

# The element types of onnx that DType has. int2 and uint2 have no counterpart in JAX's exports.
DTYPE_OF_TENSOR = {
    "tensor(bool)": "kBool",
    "tensor(int4)": "kI4",
    "tensor(int8)": "kI8",
    "tensor(int16)": "kI16",
    "tensor(int32)": "kI32",
    "tensor(int64)": "kI64",
    "tensor(uint4)": "kU4",
    "tensor(uint8)": "kU8",
    "tensor(uint16)": "kU16",
    "tensor(uint32)": "kU32",
    "tensor(uint64)": "kU64",
    "tensor(float8e4m3fn)": "kF8E4M3FN",
    "tensor(float8e4m3fnuz)": "kF8E4M3FNUZ",
    "tensor(float8e5m2)": "kF8E5M2",
    "tensor(float8e5m2fnuz)": "kF8E5M2FNUZ",
    "tensor(float8e8m0)": "kF8E8M0FNU",
    "tensor(float4e2m1)": "kF4E2M1FN",
    "tensor(bfloat16)": "kBF16",
    "tensor(float16)": "kF16",
    "tensor(float)": "kF32",
    "tensor(double)": "kF64",
    "tensor(complex64)": "kC64",
    "tensor(complex128)": "kC128",
    "tensor(string)": "kString",
}
ATTR_KINDS = {
    defs.OpSchema.AttrType.INT: "kInt",
    defs.OpSchema.AttrType.FLOAT: "kFloat",
    defs.OpSchema.AttrType.STRING: "kString",
    defs.OpSchema.AttrType.TENSOR: "kTensor",
    defs.OpSchema.AttrType.GRAPH: "kGraph",
    defs.OpSchema.AttrType.INTS: "kInts",
    defs.OpSchema.AttrType.FLOATS: "kFloats",
    defs.OpSchema.AttrType.STRINGS: "kStrings",
}
ARITIES = {
    defs.OpSchema.FormalParameterOption.Single: "kSingle",
    defs.OpSchema.FormalParameterOption.Optional: "kOptional",
    defs.OpSchema.FormalParameterOption.Variadic: "kVariadic",
}


def dtype_numbers() -> dict[str, int]:
    """The enumerators of DType with their values, read from its header."""
    text = (ROOT / "src" / "support" / "dtype.h").read_text()
    match = re.search(r"enum class DType[^{]*\{([^}]*)\}", text)
    if match is None:
        sys.exit("tools/generate_schemas.py: no enum DType in src/support/dtype.h")
    names = [name.strip() for name in match.group(1).split(",") if name.strip()]
    return {name: number for number, name in enumerate(names)}


class Table:
    """Rows of one kind; equal lists of rows are stored once."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._first: dict[tuple[str, ...], int] = {}

    def slice_of(self, rows: Iterable[str]) -> str:
        """Stores a list of rows; returns first index and length, as C++ arguments."""
        key = tuple(rows)
        if not key:
            return "0, 0"
        if key not in self._first:
            self._first[key] = len(self.rows)
            self.rows.extend(key)
        return f"{self._first[key]}, {len(key)}"


def formal_row(formal: defs.OpSchema.FormalParameter) -> str:
    arity = ARITIES[formal.option]
    homogeneous = "true" if formal.is_homogeneous else "false"
    return (
        f'{{"{formal.name}", "{formal.type_str}", Arity::{arity}, '
        f"{homogeneous}, {formal.min_arity}}}"
    )


def attr_row(attr: defs.OpSchema.Attribute) -> str:
    kind = ATTR_KINDS.get(attr.type, "kOther")
    return f'{{"{attr.name}", AttrKind::{kind}, {"true" if attr.required else "false"}}}'


def type_row(constraint: defs.OpSchema.TypeConstraintParam, numbers: dict[str, int]) -> str:
    names = (DTYPE_OF_TENSOR.get(text) for text in constraint.allowed_type_strs)
    mask = sum({1 << numbers[name] for name in names if name is not None})
    return f'{{"{constraint.type_param_str}", 0x{mask:08x}}}'


def schemas_in_force(newest: int = NEWEST_OPSET) -> list[defs.OpSchema]:
    """For each op of ai.onnx the schema in force at the oldest opset, and all later ones."""
    by_op: dict[str, list[defs.OpSchema]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= newest:
            by_op.setdefault(schema.name, []).append(schema)
    kept = []
    for op in sorted(by_op):
        versions = sorted(by_op[op], key=lambda schema: schema.since_version)
        old = [schema for schema in versions if schema.since_version <= OLDEST_OPSET]
        kept += old[-1:] + versions[len(old) :]
    return kept


def ir_versions() -> list[int]:
    """The IR version for each opset from the oldest to the newest."""
    versions = []
    for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1):
        needed = helper.OP_SET_ID_VERSION_MAP[("ai.onnx", opset)]
        if opset <= NEWEST_OPSET_OF_IR_FLOOR:
            needed = IR_FLOOR
        versions.append(max(IR_FLOOR, needed))
    return versions


def header(source: str) -> str:
    release = ".".join(onnx.__version__.split(".")[:2])
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"// Generated by tools/generate_schemas.py from {source} of onnx {release}. Do not edit.\n"
    )


def wrap(row: str) -> str:
    return textwrap.fill(row, 99, initial_indent=" " * 4, subsequent_indent=" " * 5)


def array(kind: str, name: str, rows: list[str]) -> str:
    body = "".join(f"{wrap(row)},\n" for row in rows)
    return f"constexpr {kind} {name}[] = {{\n{body}}};\n"


def schemas_text() -> str:
    formals, attrs, types = Table(), Table(), Table()
    numbers = dtype_numbers()
    rows = []
    for schema in schemas_in_force(NEWEST_READ):
        inputs = formals.slice_of(formal_row(formal) for formal in schema.inputs)
        outputs = formals.slice_of(formal_row(formal) for formal in schema.outputs)
        by_name = sorted(schema.attributes.values(), key=lambda attr: attr.name)
        attr_slice = attrs.slice_of(attr_row(attr) for attr in by_name)
        type_slice = types.slice_of(type_row(t, numbers) for t in schema.type_constraints)
        counts = (schema.min_input, schema.max_input, schema.min_output, schema.max_output)
        bounds = ", ".join(str(min(count, UNBOUNDED)) for count in counts)
        rows.append(
            f'{{"{schema.name}", {schema.since_version}, '
            f"{'true' if schema.deprecated else 'false'}, "
            f"io({inputs}), io({outputs}), attrs({attr_slice}), types({type_slice}), "
            f"{bounds}}}"
        )
    opsets = f"// IR version for opsets {OLDEST_OPSET} to {NEWEST_OPSET}.\n"
    irs = ", ".join(str(version) for version in ir_versions())
    return "\n".join(
        [
            header("onnx.defs"),
            array("Formal", "kFormals", formals.rows),
            array("AttrSpec", "kAttrs", attrs.rows),
            array("TypeConstraint", "kTypes", types.rows),
            SLICES,
            "// Sorted by op, then by opset.",
            array("Schema", "kSchemas", rows),
            f"{opsets}constexpr std::int64_t kIrVersions[] = {{{irs}}};\n",
        ]
    )


SLICES = """\
constexpr std::span<const Formal> io(std::size_t first, std::size_t count) {
  return std::span(kFormals).subspan(first, count);
}
constexpr std::span<const AttrSpec> attrs(std::size_t first, std::size_t count) {
  return std::span(kAttrs).subspan(first, count);
}
constexpr std::span<const TypeConstraint> types(std::size_t first, std::size_t count) {
  return std::span(kTypes).subspan(first, count);
}
"""


def op_names_text() -> str:
    # An op that is deprecated in all opsets we target (Scatter, Upsample) gets no method.
    written = schemas_in_force()
    names = sorted({schema.name for schema in written if not schema.deprecated})
    return header("onnx.defs") + "".join(f"JAXPORT_OP({name})\n" for name in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when stale")
    check = parser.parse_args().check
    stale = []
    for name, text in (("schemas.inc", schemas_text()), ("op_names.inc", op_names_text())):
        path = OUT / name
        if check:
            if not path.exists() or path.read_text() != text:
                stale.append(name)
        else:
            path.write_text(text)
    for name in stale:
        print(f"src/onnx/{name} is stale: run tools/generate_schemas.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
