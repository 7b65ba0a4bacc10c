#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/target/kernels.inc from the registry of kernels in the onnxruntime package.

With --check nothing is written: the exit code is 1 when the committed file is stale.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

import onnxruntime
from generate_schemas import (
    DTYPE_OF_TENSOR,
    OLDEST_OPSET,
    Table,
    array,
    dtype_numbers,
    schemas_in_force,
)
from onnx import TensorProto, defs, helper
from onnxruntime.capi import onnxruntime_pybind11_state as registry

OUT = Path(__file__).resolve().parent.parent / "src" / "target" / "kernels.inc"
CPU = "CPUExecutionProvider"
OPEN_END = 2**31 - 1  # the last opset of a kernel that is still in force

Masks = dict[str, int]  # type variable -> bit i: DType i is allowed


class Registry:
    """What ONNX Runtime says about its schemas and its kernels for the CPU."""

    def __init__(self) -> None:
        self._numbers = dtype_numbers()
        self._since: dict[str, list[int]] = {}
        for schema in registry.get_all_operator_schema():
            if schema.domain == "":
                self._since.setdefault(schema.name, []).append(schema.since_version)
        self._kernels: dict[str, list[registry.KernelDef]] = {}
        for kernel in registry.get_all_opkernel_def():
            if kernel.domain == "" and kernel.provider == CPU:
                self._kernels.setdefault(kernel.op_name, []).append(kernel)

    def mask(self, types: Iterable[str]) -> int:
        names = (DTYPE_OF_TENSOR.get(text) for text in types)
        return sum({1 << self._numbers[name] for name in names if name is not None})

    def kernels(self, schema: defs.OpSchema) -> list[Masks]:
        """The kernels that ONNX Runtime looks at for a node of this schema."""
        known = [v for v in self._since.get(schema.name, ()) if v <= schema.since_version]
        variables = {constraint.type_param_str for constraint in schema.type_constraints}
        rows = []
        for kernel in self._kernels.get(schema.name, ()):
            if known and serves(*kernel.version_range, max(known)):
                constraints = kernel.type_constraints.items()
                rows.append({v: self.mask(types) for v, types in constraints if v in variables})
        return merged(rows)


def serves(first: int, last: int, since: int) -> bool:
    """Whether ONNX Runtime takes a kernel of these opsets for a schema.

    A kernel that is still in force serves the schema it was written for and no later one.
    """
    return first == since or (first < since <= last and last != OPEN_END)


def merged(rows: list[Masks]) -> list[Masks]:
    """The same combinations of dtypes in fewer rows: rows that differ in one variable are one."""
    result: list[Masks] = []
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


def function_kernels(schema: defs.OpSchema) -> list[Masks]:
    """The dtypes in which ONNX Runtime runs an op of one type variable by its function body.

    Only f32 and f64 are asked for: a body in f16 runs too, with casts around each of its nodes.
    """
    has_body = schema.has_function or schema.has_context_dependent_function
    required = [attr for attr in schema.attributes.values() if attr.required]
    are_counts = all(attr.type == defs.OpSchema.AttrType.INT for attr in required)
    if not has_body or not are_counts or len(schema.type_constraints) != 1:
        return []
    (constraint,) = schema.type_constraints
    numbers = dtype_numbers()
    probes = (("kF32", TensorProto.FLOAT), ("kF64", TensorProto.DOUBLE))
    mask = sum(1 << numbers[name] for name, dtype in probes if loads(schema, dtype))
    return [{constraint.type_param_str: mask}] if mask else []


def loads(schema: defs.OpSchema, dtype: int) -> bool:
    inputs = [f"x{i}" for i in range(schema.min_input)]
    counts = {attr.name: 1 for attr in schema.attributes.values() if attr.required}
    shape = None if counts else ["N"]
    graph = helper.make_graph(
        [helper.make_node(schema.name, inputs, ["y"], **counts)],
        "probe",
        [helper.make_tensor_value_info(name, dtype, shape) for name in inputs],
        [helper.make_tensor_value_info("y", dtype, shape)],
    )
    opset = helper.make_opsetid("", max(schema.since_version, OLDEST_OPSET))
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=[CPU])
    except Exception:  # the package has one type for each status, without a common base
        return False
    return True


SLICES = """\
constexpr std::span<const onnx::TypeConstraint> types(std::size_t first, std::size_t count) {
  return std::span(kTypes).subspan(first, count);
}
"""
ROWS = """\
constexpr std::span<const Kernel> kernels(std::size_t first, std::size_t count) {
  return std::span(kKernels).subspan(first, count);
}
"""


def kernels_text() -> str:
    source = Registry()
    types, kernels = Table(), Table()
    rows = []
    for schema in schemas_in_force():
        masks = source.kernels(schema) or function_kernels(schema)
        if not masks:
            continue
        kernel_rows = []
        for row in masks:
            slice_ = types.slice_of(f'{{"{v}", 0x{row[v]:08x}}}' for v in sorted(row))
            kernel_rows.append(f"{{types({slice_})}}")
        rows.append(
            f'{{"{schema.name}", {schema.since_version}, kernels({kernels.slice_of(kernel_rows)})}}'
        )
    release = ".".join(onnxruntime.__version__.split(".")[:2])
    return "\n".join(
        [
            "// SPDX-License-Identifier: Apache-2.0\n"
            "// Generated by tools/generate_kernels.py from the kernel registry of onnxruntime "
            f"{release}. Do not edit.\n",
            f'constexpr std::string_view kTableVersion = "{release}";\n',
            array("onnx::TypeConstraint", "kTypes", types.rows),
            SLICES,
            array("Kernel", "kKernels", kernels.rows),
            ROWS,
            "// Sorted by op, then by the opset of the schema.",
            array("KernelEntry", "kEntries", rows),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when stale")
    check = parser.parse_args().check
    onnxruntime.set_default_logger_severity(4)  # a probe that does not load is an answer
    text = kernels_text()
    if not check:
        OUT.write_text(text)
    elif not OUT.exists() or OUT.read_text() != text:
        print("src/target/kernels.inc is stale: run tools/generate_kernels.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
