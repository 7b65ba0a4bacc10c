# SPDX-License-Identifier: Apache-2.0
"""Why a model does not load or does not agree somewhere: a row for each cause.

What no row explains makes `make runtimes` fail. A row that explains nothing does so, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

Outcome = tuple[str, str]  # see run.py


@dataclass(frozen=True)
class Cause:
    """`place` is the beginning of a Place's key; `program` and `detail` are searched for.

    `fault` says whose it is, where it is not that of the runtime.
    """

    place: str
    why: str
    program: str = ""
    detail: str = ""
    fault: str = "the runtime"

    def explains(self, place: str, program: str, outcome: Outcome) -> bool:
        return (
            place.startswith(self.place)
            and re.search(self.program, program) is not None
            and re.search(self.detail, " ".join(outcome[1].split())) is not None
        )


CAUSES = [
    Cause(
        "onnxruntime-1.23",
        "Attention checks the shape of a bias that has more heads than the keys",
        detail="ComputeOutputShapeForAttention",
        fault="jaxport, which does not avoid it yet",
    ),
    Cause(
        "onnxruntime-1.23",
        "RMSNormalization over one element is refused",
        detail="must be larger than 1, got 1",
        fault="jaxport, which avoids it for LayerNormalization only",
    ),
    Cause("reference", "its TopK takes at most 64 elements", detail="at most 64 array objects"),
    Cause(
        "openvino", "f64 is f32, and an infinity becomes 3.4e38 on the way", program="^max_inf_nan"
    ),
    Cause(
        "openvino",
        "numbers of u32 from 2^31 on are 2^31 - 1 in a result that is a constant",
        program="^random_split",
    ),
    Cause(
        "openvino", "f64 is f32, in which the iteration for f64 ends in NaN", program="^eig_shape_f"
    ),
    Cause(
        "web-webgpu",
        "nodes of a dtype that WebGPU lacks are given no provider, and the model does not load",
        detail="Provider type for .* is not set",
    ),
    Cause("web-webgpu", "SwiftShader has no halves", detail="requires f16 but the device does not"),
    Cause("tract", "it has no bfloat16", detail="Unknown DatumType Bfloat16"),
    Cause("tract", "its Loop has one result", detail="Op says 1, node says"),
    Cause("tract", "Pad needs a constant fill", detail="Pad constant input must be constant"),
    Cause("tract", "a product of two vectors", detail=r"a_rank > 1 \|\| b_rank > 1"),
    Cause("tract", "IsNaN has the dtype of its operand", detail='"IsNaN" IsNan .*unify Bool'),
    Cause("tract", "bool is not compared", detail="Bool is not a number"),
    Cause("tract", "u32 is not squared", detail="Square does not support U32"),
    Cause("tract", "results are of a dtype for sizes", detail="(unify|public API) .*TDim"),
    Cause("tract", "nodes of two branches have one name", detail="Duplicate node name"),
    Cause("tract", "Scan: an element that its body does not use, shapes", detail='Scan" Scan'),
    Cause("tract", "a symbol of its own is left open", detail="Undetermined symbol|SymbolScope"),
    Cause("tract", "Slice of a symbolic size with steps", detail="StridedSlice"),
    Cause("tract", "it panics", detail="ended with code -6"),
    Cause(
        "tract", "it takes minutes for 180 operations on one number", program="^rng_bit_generator"
    ),
    Cause("tract", "Celu divides by alpha twice", program="Celu"),
    Cause("tract", "the dtype of ConstantOfShape", detail="unify F32 with F64"),
    Cause("tract", "Slice with steps behind a Reshape", detail="Downsample over"),
    Cause("tract", "Relu of NaN is 0", program="Conv2D and BatchNorm"),
    Cause("web-webgpu", "Relu of NaN is 0", program="Conv2D and BatchNorm"),
    Cause("openvino", "Relu of NaN is 0", program="Conv2D and BatchNorm"),
    Cause("openvino", "NaN of a softmax over -inf becomes 0", program="without keys, -inf"),
]


def cause_of(place: str, program: str, outcome: Outcome) -> Cause | None:
    return next((cause for cause in CAUSES if cause.explains(place, program, outcome)), None)
