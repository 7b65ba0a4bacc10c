# SPDX-License-Identifier: Apache-2.0
"""The commands: python -m examples.dinov3 --help."""

import argparse
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np

from . import checkpoint, run, variants, weights

TOLERANCE = 1e-4  # of the largest value


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        return options.command(options)
    except (checkpoint.CheckpointError, FileNotFoundError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    root = argparse.ArgumentParser(prog="python -m examples.dinov3", description=__doc__)
    commands = root.add_subparsers(required=True)

    def command(function: Any) -> argparse.ArgumentParser:
        one = commands.add_parser(function.__name__, help=function.__doc__)
        one.set_defaults(command=function)
        return one

    one = command(convert)
    one.add_argument("checkpoint", type=Path)
    one.add_argument("--variant", help="by default what the name of the file says")
    one.add_argument("-o", "--output", type=Path, required=True)
    for function in (export, reference, show):
        one = command(function)
        one.add_argument("--variant", default="vits16", choices=sorted(variants.VARIANTS))
        one.add_argument("--weights", type=Path, help="random ones when left out")
        one.add_argument("-o", "--output", type=Path, required=True)
        size = {"type": int, "default": 224}
        if function is export:
            one.add_argument("--image-size", type=size_or_open, default=224, help="or 'any'")
            one.add_argument("--batch", type=count_or_name, default="B")
            one.add_argument("--opset", type=int, default=23)
        else:
            one.add_argument("--image-size", **size)
        if function is reference:
            one.add_argument("--batch", type=int, default=2)
            one.add_argument("--image", type=Path, nargs="*", help="noise when left out")
        if function is show:
            one.add_argument("image", type=Path, nargs="+", help="one image, or two to match")
    one = command(verify)
    one.add_argument("model", type=Path)
    one.add_argument("--reference", type=Path, required=True)
    return root


def size_or_open(text: str) -> int | None:
    return None if text == "any" else int(text)


def count_or_name(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def convert(options: argparse.Namespace) -> int:
    """maps a checkpoint of Meta or Hugging Face to this example's names"""
    variant = options.variant or variant_in(options.checkpoint.name)
    shapes = weights.empty(lambda: variants.build(variant, key=jax.random.key(0)))
    weights.save(options.output, weights.load(options.checkpoint, shapes))
    print(f"{options.output}: {variant}")
    return 0


def variant_in(name: str) -> str:
    found = [one for one in variants.VARIANTS if one in name]
    if not found:
        raise ValueError(f"{name} names no variant; give --variant")
    return max(found, key=len)


def loaded(options: argparse.Namespace) -> Any:
    if options.weights is None:
        return variants.build(options.variant, key=jax.random.key(0))
    shapes = weights.empty(lambda: variants.build(options.variant, key=jax.random.key(0)))
    return weights.load(options.weights, shapes)


def export(options: argparse.Namespace) -> int:
    """writes an ONNX model"""
    run.export(
        loaded(options),
        options.output,
        image_size=options.image_size,
        batch=options.batch,
        opset=options.opset,
    )
    print(options.output)
    return 0


def reference(options: argparse.Namespace) -> int:
    """writes what JAX computes for an input, layer by layer"""
    if options.image:
        from . import picture  # needs Pillow

        images = picture.batch_of(options.image, options.image_size)
    else:
        shape = (options.batch, 3, options.image_size, options.image_size)
        images = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    run.write_reference(loaded(options), images, options.output)
    print(options.output)
    return 0


def verify(options: argparse.Namespace) -> int:
    """compares an ONNX model with a reference"""
    rows = run.verify(options.model, options.reference)
    for row in rows:
        print(f"{row.name:16} {row.absolute:9.2e} {row.relative:9.2e} of the largest value")
    worst = max(row.relative for row in rows)
    print(f"largest: {worst:.2e}, allowed: {TOLERANCE:.0e}")
    return 0 if worst <= TOLERANCE else 1


def show(options: argparse.Namespace) -> int:
    """draws the features of an image, or what two images share"""
    from . import picture  # needs Pillow

    picture.draw(loaded(options), options.image, options.image_size, options.output)
    print(options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
