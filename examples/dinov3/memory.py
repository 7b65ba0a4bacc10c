# SPDX-License-Identifier: Apache-2.0
"""How much memory an export holds beside the mapped file: python -m examples.dinov3.memory.

Makes a file of random weights in the shapes of the 7B model, exports it, and prints two numbers in
MB: the weights, and what the process held at most in memory of its own, beyond the start of JAX.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import jax
import numpy as np

from . import checkpoint, run, variants, weights
from .vit import ViTConfig


def own_memory() -> float:
    """MB that belong to no file: a mapped file is only a cache of the disk."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the system does not say how much memory a process holds")


class Peak:
    def __enter__(self) -> "Peak":
        self.before = self.most = own_memory()
        self.running = True
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self) -> None:
        while self.running:
            self.most = max(self.most, own_memory())
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()

    @property
    def held(self) -> float:
        return self.most - self.before


def random_file(path: Path, config: ViTConfig) -> weights.Model:
    """Writes all weights as views of one small buffer, and gives the model without them."""
    shapes = weights.empty(lambda: variants.build(config, key=jax.random.key(0)))
    noise = 0.02 * np.random.default_rng(0).normal(size=1 << 16).astype(np.float32)
    checkpoint.write_safetensors(
        path, {name: Repeated(noise, x.shape) for name, x in weights.named_arrays(shapes).items()}
    )
    return shapes


class Repeated:
    """As much of an array as its shape says, made when it is asked for."""

    def __init__(self, noise: checkpoint.Array, shape: tuple[int, ...]):
        self.noise, self.shape, self.dtype = noise, shape, noise.dtype
        self.nbytes = int(np.prod(shape)) * noise.dtype.itemsize

    def __array__(self, dtype: object = None, copy: object = None) -> checkpoint.Array:
        return np.resize(self.noise, self.shape)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=4096)
    parser.add_argument("--depth", type=int, default=9)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    config = ViTConfig(
        options.width,
        options.depth,
        options.width // 128,
        mlp_ratio=3.0,
        mlp="swiglu",
        mlp_align=64,
        qkv_bias=(False, False, False),
    )
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "weights.safetensors"
        shapes = random_file(path, config)
        with Peak() as peak:
            run.export(weights.load(path, shapes), Path(folder) / "model.onnx")
        print(f"{path.stat().st_size / 1e6:.0f} {peak.held:.0f}")


if __name__ == "__main__":
    main()
