# SPDX-License-Identifier: Apache-2.0
"""What jaxport.verify costs beside its parts: the table of docs/verification.md.

    python bench/verification.py ["ViT-S/16" …]

Seconds of processors, which other work on the machine hardly changes. A network whose first dim is
symbolic is verified at two sizes, so JAX compiles it twice.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import jax
from networks import Network, network

import jaxport
from jaxport import runtime

NAMES = ("MobileNet", "ViT-S/16", "encoder", "LSTM and GRU", "MLP policy")
SYMBOLIC = ("ViT-S/16", "MLP policy")  # also with a batch of any size; their inputs are f32
COLUMNS = ("network", "runs of JAX", "of the model", "conversion", "a run of the model")
COLUMNS = (*COLUMNS, "JAX compiles", "a run of JAX", "verify")


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def row(given: Network, specs: list[Any], title: str) -> str:
    fn, arrays = given.build(), given.arrays()
    converted, model = seconds(lambda: jaxport.to_onnx(fn, specs))
    session = runtime.open_session(model)
    runtime.run(session, arrays)
    run, _ = seconds(lambda: runtime.run(session, arrays))
    compiled, program = seconds(lambda: jax.jit(fn).lower(*arrays).compile())
    jax_run, _ = seconds(lambda: jax.block_until_ready(program(*arrays)))
    jax.clear_caches()
    verified, found = seconds(lambda: jaxport.verify(fn, model, specs))
    assert found.ok, found
    numbers = (converted, run, compiled, jax_run, verified)
    cells = [
        title,
        str(found.jax_runs),
        str(found.model_runs),
        *(f"{number:.2f}" for number in numbers),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    print(f"| {' | '.join(COLUMNS)} |")
    print("|---" * len(COLUMNS) + "|")
    for name in sys.argv[1:] or NAMES:
        given = network(name)
        print(row(given, given.structs(), name), flush=True)
        if name in SYMBOLIC:
            symbolic = [("B", *shape[1:]) for shape, _ in given.inputs]
            print(row(given, symbolic, f"{name}, any batch"), flush=True)


if __name__ == "__main__":
    main()
