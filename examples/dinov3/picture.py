# SPDX-License-Identifier: Apache-2.0
"""Pictures of features: their principal components, and nearest patches of two images."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image, ImageDraw

from .checkpoint import Array

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet, as in training


def batch_of(paths: Sequence[Path], size: int) -> Array:
    """Images as the model takes them: (images, 3, size, size), normalised."""
    return np.stack([normalized(opened(path, size)) for path in paths])


def opened(path: Path, size: int) -> Image.Image:
    return Image.open(path).convert("RGB").resize((size, size), Image.Resampling.BILINEAR)


def normalized(image: Image.Image) -> Array:
    pixels = np.asarray(image, np.float32) / 255
    return np.moveaxis((pixels - MEAN) / DEVIATION, -1, 0).astype(np.float32)


def components(tokens: Array, count: int = 3) -> Array:
    """The first principal components of the tokens, each scaled to 0 … 1."""
    centered = tokens - tokens.mean(axis=0)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    # The sign of a direction is free; the largest entry is made positive, so that pictures repeat.
    largest = np.abs(directions).argmax(axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    scores = centered @ (directions * signs[:, None])[:count].T
    low, high = scores.min(axis=0), scores.max(axis=0)
    return (scores - low) / np.maximum(high - low, 1e-12)


def nearest(left: Array, right: Array, count: int) -> list[tuple[int, int, float]]:
    """Pairs of patches that are each other's nearest by cosine, the most similar first."""
    unit_left = left / np.linalg.norm(left, axis=1, keepdims=True)
    unit_right = right / np.linalg.norm(right, axis=1, keepdims=True)
    similarity = unit_left @ unit_right.T
    to_right, to_left = similarity.argmax(axis=1), similarity.argmax(axis=0)
    pairs = [(i, int(j)) for i, j in enumerate(to_right) if to_left[j] == i]
    pairs.sort(key=lambda pair: -similarity[pair])
    return [(i, j, float(similarity[i, j])) for i, j in pairs[:count]]


def draw(model: Any, paths: Sequence[Path], size: int, output: Path, matches: int = 12) -> None:
    """Each image beside its components; of two images also lines between nearest patches."""
    images = [opened(path, size) for path in paths[:2]]
    patches = patch_tokens(model, np.stack([normalized(image) for image in images]))
    grid = size // model.config.patch_size
    colours = components(np.concatenate(list(patches))).reshape(len(images), grid, grid, 3)
    canvas = Image.new("RGB", (2 * size, len(images) * size))
    for row, (image, colour) in enumerate(zip(images, colours, strict=True)):
        features = Image.fromarray(np.uint8(255 * colour))
        canvas.paste(image, (0, row * size))
        canvas.paste(features.resize((size, size), Image.Resampling.NEAREST), (size, row * size))
    if len(images) == 2:
        draw_matches(canvas, nearest(patches[0], patches[1], matches), grid, size)
    canvas.save(output)


def patch_tokens(model: Any, images: Array) -> Array:
    run = eqx.filter_jit(lambda model, images: jax.vmap(model)(images).patch_tokens)
    return np.asarray(run(jax.tree.map(jnp.asarray, model), images))


def draw_matches(
    canvas: Image.Image, pairs: Sequence[tuple[int, int, float]], grid: int, size: int
) -> None:
    pencil, step = ImageDraw.Draw(canvas), size / grid
    for left, right, _ in pairs:
        ends = [
            ((index % grid + 0.5) * step, (index // grid + 0.5) * step + row * size)
            for row, index in enumerate((left, right))
        ]
        pencil.line([*ends[0], *ends[1]], fill=(255, 255, 0), width=2)
