# SPDX-License-Identifier: Apache-2.0
"""Models of one node, for every op and dtype: what a runtime without a registry can be asked.

Operands are small whole numbers, so that every dtype computes the same from them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from generate_schemas import DTYPE_OF_TENSOR, OLDEST_OPSET, schemas_in_force
from onnx import NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

X = (2, 3)  # the shape of an operand about which a recipe says nothing
IMAGE = (1, 2, 4, 4)
# Where a type variable takes several dtypes, one after the other is tried beside the first of these
# for each other variable.
BASES = ("kF32", "kI64", "kBool", "kU8", "kI8", "kI32")
# Texts, complex numbers, and what no runtime but the newest can cast.
UNPROBED_DTYPES = {"kString", "kC64", "kC128", "kI4", "kU4", "kF4E2M1FN", "kF8E8M0FNU"}

ALL = "*"  # in the place of a type variable

Operand = tuple[int, ...] | np.ndarray | None  # a shape, a constant, or left out
Recipe = tuple[Sequence[Operand], dict[str, Any]]


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def scalar(value: int) -> np.ndarray:
    return np.array(value, np.int64)


RESULTS = {"Split": 2, "TopK": 2}
SMALL_FLOATS = {"kBF16", "kF8E4M3FN", "kF8E4M3FNUZ", "kF8E5M2", "kF8E5M2FNUZ"}
POOL = {"kernel_shape": [2, 2]}
RECIPES: dict[str, Recipe] = {
    "ArgMax": ([X], {"axis": 1}),
    "ArgMin": ([X], {"axis": 1}),
    "Attention": ([(1, 2, 4, 8), (1, 2, 5, 8), (1, 2, 5, 8)], {}),
    "AveragePool": ([IMAGE], POOL),
    "BatchNormalization": ([IMAGE, (2,), (2,), (2,), (2,)], {}),
    "Clip": ([X, (), ()], {}),
    "Compress": ([X, np.array([True, False])], {"axis": 0}),
    "Concat": ([X, X], {"axis": 1}),
    "ConstantOfShape": ([i64(2, 3)], {}),
    "Conv": ([IMAGE, (3, 2, 2, 2)], {}),
    "ConvInteger": ([IMAGE, (3, 2, 2, 2)], {}),
    "ConvTranspose": ([IMAGE, (2, 3, 2, 2)], {}),
    "CumSum": ([X, scalar(1)], {}),
    "CumProd": ([X, scalar(1)], {}),
    "DepthToSpace": ([(1, 4, 2, 2)], {"blocksize": 2}),
    "DequantizeLinear": ([X, (), ()], {}),
    "DFT": ([(1, 4, 1)], {}),
    "Dropout": ([X], {}),
    "Einsum": ([X, X], {"equation": "ij,ij->i"}),
    "Expand": ([X, i64(2, 2, 3)], {}),
    "Gather": ([X, i64(1, 0)], {"axis": 1}),
    "GatherElements": ([X, np.array([[0, 1, 2], [2, 1, 0]])], {"axis": 1}),
    "GatherND": ([X, np.array([[0, 1], [1, 2]])], {}),
    "Gemm": ([(2, 3), (3, 4), (4,)], {}),
    "GlobalAveragePool": ([IMAGE], {}),
    "GlobalMaxPool": ([IMAGE], {}),
    "GridSample": ([IMAGE, (1, 2, 2, 2)], {}),
    "GroupNormalization": ([IMAGE, (2,), (2,)], {"num_groups": 2}),
    "GRU": ([(3, 2, 4), (1, 9, 4), (1, 9, 3)], {"hidden_size": 3}),
    "InstanceNormalization": ([IMAGE, (2,), (2,)], {}),
    "LayerNormalization": ([X, (3,), (3,)], {}),
    "LRN": ([IMAGE], {"size": 3}),
    "LSTM": ([(3, 2, 4), (1, 12, 4), (1, 12, 3)], {"hidden_size": 3}),
    "MatMul": ([(2, 3), (3, 4)], {}),
    "MatMulInteger": ([(2, 3), (3, 4)], {}),
    "Max": ([X, X], {}),
    "MaxPool": ([IMAGE], POOL),
    "Mean": ([X, X], {}),
    "Min": ([X, X], {}),
    "Mod": ([X, X], {"fmod": 1}),
    "OneHot": ([i64(0, 2), scalar(3), (2,)], {}),
    "MeanVarianceNormalization": ([IMAGE], {}),
    "Pad": ([X, i64(0, 1, 1, 0), scalar(1)], {}),
    "QuantizeLinear": ([X, (), ()], {}),
    "Range": ([(), (), ()], {}),
    "Reshape": ([X, i64(3, 2)], {}),
    "Resize": ([IMAGE, None, None, i64(1, 2, 8, 8)], {}),
    "ReverseSequence": ([X, i64(2, 1)], {"batch_axis": 0, "time_axis": 1}),
    "RMSNormalization": ([X, (3,)], {}),
    "RNN": ([(3, 2, 4), (1, 3, 4), (1, 3, 3)], {"hidden_size": 3}),
    "RotaryEmbedding": ([(1, 2, 3, 4), (1, 3, 2), (1, 3, 2)], {}),
    "ScatterElements": ([X, np.array([[0, 1], [1, 2]]), (2, 2)], {"axis": 1}),
    "ScatterND": ([X, np.array([[0, 1], [1, 2]]), (2,)], {}),
    "Slice": ([X, i64(0), i64(2), i64(1)], {}),
    "SpaceToDepth": ([IMAGE], {"blocksize": 2}),
    "Split": ([(2, 4), i64(2, 2)], {"axis": 1}),
    "Squeeze": ([(2, 1, 3), i64(1)], {}),
    "Sum": ([X, X], {}),
    "TensorScatter": ([(2, 2, 4, 3), (2, 2, 1, 3), i64(0, 1)], {}),
    "Tile": ([X, i64(2, 1)], {}),
    "TopK": ([X, i64(2)], {}),
    "Transpose": ([X], {"perm": [1, 0]}),
    "Trilu": ([(3, 3)], {}),
    "Unsqueeze": ([X, i64(1)], {}),
    "Where": ([X, X, X], {}),
}
# Attributes take the place of these operands in older schemas.
AXES_OF_OLD_REDUCTIONS = {"axes": [1], "keepdims": 0}
# With control flow, texts, sequences, dice, or many operands of a kind that nothing exports.
UNPROBED_OPS = {
    *("If", "Loop", "Scan", "Optional", "OptionalGetElement", "OptionalHasElement", "ImageDecoder"),
    *("Bernoulli", "Multinomial", "Constant"),
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "SequenceMap"),
    *("QLinearConv", "QLinearMatMul", "MaxRoiPool", "MaxUnpool", "RoiAlign", "NonMaxSuppression"),
    *("AffineGrid", "Col2Im", "DeformConv", "STFT", "MelWeightMatrix", "TfIdfVectorizer"),
    *("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "CenterCropPad", "StringNormalizer"),
    *("BlackmanWindow", "HammingWindow", "HannWindow", "DynamicQuantizeLinear", "Unique"),
    *("GlobalLpPool", "LpPool", "Det", "BitCast"),
}


@dataclass(frozen=True)
class Probe:
    """A model of one node. `varied` is the type variable whose dtype is in question."""

    op: str
    since: int
    varied: str
    dtype: str
    model: bytes

    @property
    def name(self) -> str:
        return f"{self.op} {self.since} {self.varied} {self.dtype}"


def is_probed(schema: defs.OpSchema) -> bool:
    formals = [*schema.inputs, *schema.outputs]
    is_known = all(dtypes_of(schema, formal.type_str) for formal in formals)
    return is_known and not schema.deprecated and schema.name not in UNPROBED_OPS


def dtypes_of(schema: defs.OpSchema, kind: str) -> list[str]:
    """The dtypes of a formal: those of its type variable, or the one that is written there."""
    texts = [kind]
    for constraint in schema.type_constraints:
        if constraint.type_param_str == kind:
            texts = list(constraint.allowed_type_strs)
    names = [DTYPE_OF_TENSOR[text] for text in texts if text in DTYPE_OF_TENSOR]
    return [name for name in names if name not in UNPROBED_DTYPES]


def base_of(schema: defs.OpSchema, variable: str) -> str:
    allowed = dtypes_of(schema, variable)
    return next((base for base in BASES if base in allowed), allowed[0])


def bases_of(schema: defs.OpSchema) -> dict[str, str]:
    variables = [constraint.type_param_str for constraint in schema.type_constraints]
    return {v: base_of(schema, v) for v in variables if dtypes_of(schema, v)}


def recipe_of(schema: defs.OpSchema) -> Recipe:
    if schema.name.startswith("Reduce"):
        has_axes = len(schema.inputs) > 1
        operands: list[Operand] = [X, i64(1)] if has_axes else [X]
        return operands, {"keepdims": 0} if has_axes else AXES_OF_OLD_REDUCTIONS
    if schema.name == "BitShift":
        return [X, X], {"direction": "RIGHT"}
    if schema.name == "Split" and schema.since_version < 13:
        return [(2, 4)], {"axis": 1}
    if schema.name in RECIPES:
        return RECIPES[schema.name]
    return [X] * schema.min_input, {}


def tensor_numbers() -> Iterator[tuple[str, int]]:
    """ONNX's number for each DType."""
    for name, number in TensorProto.DataType.items():
        text = f"tensor({name.lower().replace('_', '')})"
        if text in DTYPE_OF_TENSOR:
            yield DTYPE_OF_TENSOR[text], number


NUMBERS = dict(tensor_numbers())


def probes_of(schema: defs.OpSchema) -> Iterator[Probe]:
    """Each dtype of each type variable, and each float in the place of all variables."""
    bases = bases_of(schema)
    used = [v for v in bases if v in {formal.type_str for formal in schema.inputs}]
    for variable in used or list(bases)[:1]:
        for dtype in dtypes_of(schema, variable):
            yield probe(schema, variable, dtype, {**bases, variable: dtype})
    floats = [variable for variable in used if bases[variable] == "kF32"]
    for dtype in ("kF16", "kBF16", "kF64"):
        if len(floats) > 1 and all(dtype in dtypes_of(schema, v) for v in floats):
            yield probe(schema, ALL, dtype, {**bases, **dict.fromkeys(floats, dtype)})


class _Border:
    """Inputs and outputs of a probe. ONNX Runtime Web has no bfloat16 and no floats of 8 bits
    there, so that these cross it as f32."""

    def __init__(self) -> None:
        self.inputs: list[ValueInfoProto] = []
        self.outputs: list[ValueInfoProto] = []
        self.before: list[NodeProto] = []
        self.after: list[NodeProto] = []

    def takes(self, name: str, kind: str, shape: Sequence[int]) -> None:
        outside = f"{name}_f32" if kind in SMALL_FLOATS else name
        number = TensorProto.FLOAT if kind in SMALL_FLOATS else NUMBERS[kind]
        self.inputs.append(helper.make_tensor_value_info(outside, number, shape))
        if outside != name:
            self.before.append(helper.make_node("Cast", [outside], [name], to=NUMBERS[kind]))

    def gives(self, name: str, kind: str) -> None:
        outside = f"{name}_f32" if kind in SMALL_FLOATS else name
        number = TensorProto.FLOAT if kind in SMALL_FLOATS else NUMBERS[kind]
        self.outputs.append(helper.make_tensor_value_info(outside, number, None))
        if outside != name:
            self.after.append(helper.make_node("Cast", [name], [outside], to=TensorProto.FLOAT))


def probe(schema: defs.OpSchema, varied: str, dtype: str, dtypes: dict[str, str]) -> Probe:
    operands, attrs = recipe_of(schema)
    border = _Border()
    constants, names = [], []
    for i, operand in enumerate(operands):
        names.append("" if operand is None else f"x{i}")
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        kind = dtypes.get(formal.type_str) or dtypes_of(schema, formal.type_str)[0]
        if isinstance(operand, np.ndarray):
            array = operand.astype(helper.tensor_dtype_to_np_dtype(NUMBERS[kind]))
            constants.append(numpy_helper.from_array(array, f"x{i}"))
        elif operand is not None:
            border.takes(f"x{i}", kind, operand)
    to = {"Cast": "to", "EyeLike": "dtype"}.get(schema.name)
    attrs = {**attrs, **({to: TensorProto.FLOAT} if to else {})}
    outputs = [f"y{i}" for i in range(max(RESULTS.get(schema.name, 1), schema.min_output))]
    for i, name in enumerate(outputs):
        formal = schema.outputs[min(i, len(schema.outputs) - 1)]
        kind = dtypes.get(formal.type_str) or (dtypes_of(schema, formal.type_str) or ["kF32"])[0]
        border.gives(name, "kF32" if to else kind)
    node = helper.make_node(schema.name, names, outputs, **attrs)
    nodes = [*border.before, node, *border.after]
    graph = helper.make_graph(nodes, "probe", border.inputs, border.outputs, constants)
    opset = max(schema.since_version, OLDEST_OPSET)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return Probe(schema.name, schema.since_version, varied, dtype, model.SerializeToString())


@functools.cache
def all_probes() -> list[Probe]:
    return [p for schema in schemas_in_force() if is_probed(schema) for p in probes_of(schema)]
