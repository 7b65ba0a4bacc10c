# SPDX-License-Identifier: Apache-2.0
"""Exports three models, runs each in ONNX Runtime, compares it with JAX, and writes a report page.

`make demo` runs it.
"""

import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from flax import nnx

import jaxport

REPORT = Path("build/demo")


class Block(nnx.Module):
    def __init__(self, width: int, heads: int, rngs: nnx.Rngs):
        self.norm1 = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(heads, width, width, decode=False, rngs=rngs)
        self.norm2 = nnx.LayerNorm(width, rngs=rngs)
        self.mlp = nnx.Sequential(
            nnx.Linear(width, 4 * width, rngs=rngs),
            nnx.gelu,
            nnx.Linear(4 * width, width, rngs=rngs),
        )

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nnx.Module):
    def __init__(self, width: int, heads: int, layers: int, rngs: nnx.Rngs):
        self.patches = nnx.Conv(3, width, (16, 16), strides=(16, 16), rngs=rngs)
        self.positions = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, 196, width)))
        self.blocks = nnx.List([Block(width, heads, rngs) for _ in range(layers)])
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.head = nnx.Linear(width, 1000, rngs=rngs)

    def __call__(self, image: jax.Array) -> jax.Array:
        x = self.patches(image)
        x = x.reshape(x.shape[0], -1, x.shape[-1]) + self.positions[...]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(axis=1))


def similarity(queries: jax.Array, keys: jax.Array) -> jax.Array:
    """How much each key attends to each query: a plain function."""
    scale = jnp.sqrt(queries.shape[-1]).astype(queries.dtype)
    return jax.nn.softmax(queries @ keys.T / scale, axis=-1)


@dataclass(frozen=True)
class Example:
    name: str
    fn: Callable[..., Any]
    inputs: list[tuple[int | str, ...]]  # "B" is a size that is known only when the model runs


def examples() -> list[Example]:
    vit = VisionTransformer(width=192, heads=3, layers=6, rngs=nnx.Rngs(0))
    mlp = eqx.nn.MLP(in_size=64, out_size=10, width_size=256, depth=3, key=jax.random.key(0))
    return [
        Example("NNX vision transformer", vit, [("B", 224, 224, 3)]),
        Example("Equinox MLP", jax.vmap(mlp), [("B", 64)]),
        Example("plain function", similarity, [("B", 64), (100, 64)]),
    ]


def largest_error(example: Example, path: Path) -> float:
    """Runs the model and JAX on the same random numbers, with 2 for every symbolic size."""
    rng = np.random.default_rng(0)
    shapes = [[size if isinstance(size, int) else 2 for size in shape] for shape in example.inputs]
    arrays = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]

    same, message = jaxport.allclose(example.fn, path, arrays, rtol=1e-4, atol=1e-5)
    if not same:
        sys.exit(f"{example.name}: {message}")

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    (actual,) = session.run(None, dict(zip(names, arrays, strict=True)))
    return float(np.abs(actual - np.asarray(example.fn(*arrays))).max())


def export(example: Example, folder: Path) -> tuple[str, ...]:
    """One row of the table."""
    path = folder / f"{example.name.replace(' ', '_')}.onnx"
    model = jaxport.to_onnx(example.fn, example.inputs, return_mode="model")
    model.save(path)
    return (
        example.name,
        str(model.stats()["nodes"]),
        f"{path.stat().st_size / 1000:,.1f} kB",
        f"{largest_error(example, path):.1e}",
        f"{model.times['trace']:.3f}",
        f"{model.times['compile']:.3f}",
        f"{model.times['write']:.3f}",
    )


def print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([name.ljust(widths[0]), *right]))


def write_report(example: Example) -> Path | None:
    """The page that shows a model beside its program, with what verification finds."""
    path = REPORT / "vision_transformer.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        jaxport.to_onnx(example.fn, example.inputs, verify=True, report=path, return_mode="model")
    except jaxport.ConversionError as error:  # built without Node.js: there is no page
        print(f"\n{error}")
        return None
    return path


def print_next(page: Path | None) -> None:
    """What to look at, and commands to try: each works as it is."""
    if page is not None:
        print(f"\nWhat became of each line of the vision transformer:\n  {page.resolve().as_uri()}")
    command = Path(sys.executable).with_name("jaxport")
    if command.is_relative_to(Path.cwd()):
        command = command.relative_to(Path.cwd())
    inputs = "--input queries:Bx64 --input keys:100x64"
    model = REPORT / "similarity.onnx"
    print("\nNext, with any function:")
    print(f"  {command} convert examples.demo:similarity {inputs} -o {model}")
    print(f"  {command} targets {model}")
    if page is not None:
        html = model.with_suffix(".html")
        print(f"  {command} report examples.demo:similarity {inputs} --verify -o {html}")


def progress(step: int, steps: int, what: str) -> None:
    """A line that the next one overwrites, in a terminal."""
    if sys.stderr.isatty():
        done = "" if step == steps else f"[{step + 1}/{steps}] {what} …"
        print(f"\r\033[K{done}", end="", file=sys.stderr, flush=True)


def main() -> None:
    rows = [("model", "nodes", "size", "largest error", "trace s", "compile s", "write s")]
    shown = examples()
    steps = len(shown) + 1
    with tempfile.TemporaryDirectory() as folder:
        for i, example in enumerate(shown):
            progress(i, steps, example.name)
            rows.append(export(example, Path(folder)))
    progress(steps, steps, "")
    print_table(rows)
    progress(steps - 1, steps, f"verification and page of the {shown[0].name}")
    page = write_report(shown[0])
    progress(steps, steps, "")
    print_next(page)


if __name__ == "__main__":
    main()
