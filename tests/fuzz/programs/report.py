# SPDX-License-Identifier: Apache-2.0
"""A find as a file that runs by itself."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from fuzz.programs.program import SHORT, module_source
from fuzz.programs.shrink import Case

TAIL = """
if __name__ == "__main__":
    import jaxport
    from jaxport import _jax, runtime

    jax.config.update("jax_enable_x64", {double})
    inputs = [{inputs}]
    model = jaxport.to_onnx(
        f,
        [{structs}],
        opset={opset},
        raise_={raising},
        target="{target}",
        enable_double_precision={double},
    )
    print("JAX  ", jax.tree.leaves(jax.jit(f)(*inputs)))
    session = runtime.open_session(model)
    print("model", runtime.run(session, [_jax.host_array(x) for x in inputs]))
"""


def literal(array: np.ndarray) -> str:
    dtype = SHORT[array.dtype.name]
    wide = array.astype(np.complex128) if np.iscomplexobj(array) else array
    if array.dtype.name in ("float16", "bfloat16", "float32", "float64"):
        wide = array.astype(np.float64)
    text = repr(wide.tolist()).replace("inf", "np.inf").replace("nan", "np.nan")
    shape = f".reshape({array.shape})" if array.size == 0 else ""
    return f"np.asarray({text}).astype({dtype}){shape}"


def find_source(seed: int, case: Case, outcome: Any) -> str:
    """The source, the inputs and both results."""
    program = case.program
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# seed {seed}: {outcome.kind}: {' '.join(outcome.detail.split())}",
        *_comment("JAX  ", outcome.want),
        *_comment("model", outcome.have),
        "",
        module_source(program),
    ]
    options = program.options
    structs = ", ".join(
        f"jax.ShapeDtypeStruct({_shape(g.shape)}, {g.dtype})" for g in program.inputs
    )
    symbols = ", ".join(program.symbols)
    if symbols:
        lines.append(f'{symbols}, = jax.export.symbolic_shape("{symbols}")')
    inputs = ", ".join(literal(value) for value in case.values)
    lines.append(
        TAIL.format(
            inputs=inputs,
            structs=structs,
            opset=options.opset,
            raising=options.raising,
            target=options.target,
            double=options.double,
        )
    )
    return "\n".join(lines)


def _shape(shape: tuple[int | str, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _comment(title: str, results: Any) -> list[str]:
    if not results:
        return []
    text = ", ".join(np.array2string(np.asarray(r), threshold=40) for r in results)
    return [f"# {line}" for line in textwrap.wrap(f"{title} {' '.join(text.split())}", 95)]
