# SPDX-License-Identifier: Apache-2.0
"""Exporting a model, and comparing what ONNX Runtime gives with what JAX gave."""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime

import jaxport

from .checkpoint import Array, read_safetensors, write_safetensors

OUTPUTS = ["class_token", "register_tokens", "patch_tokens"]


def export(
    model: Any,
    path: Path,
    *,
    image_size: int | None = 224,
    batch: int | str = "B",
    opset: int = 23,
    double: bool = False,
) -> Any:
    """Writes the model for a batch of images; image_size None leaves height and width open."""
    patch = model.config.patch_size
    grid = [f"{patch}*h", f"{patch}*w"] if image_size is None else [image_size, image_size]
    return jaxport.to_onnx(
        jax.vmap(model),
        [(batch, model.config.channels, *grid)],
        opset=opset,
        model_name="dinov3",
        input_names=["image"],
        output_names=OUTPUTS,
        return_mode="file",
        output_path=path,
        enable_double_precision=double,
    )


def activations(model: Any, images: Array) -> dict[str, Array]:
    """What JAX computes for a batch: the features, and the tokens after each layer."""

    @eqx.filter_jit
    def run(model: Any, images: jax.Array) -> Any:
        return jax.vmap(lambda image: (model(image), model.hidden_states(image)))(images)

    features, states = run(jax.tree.map(jnp.asarray, model), images)
    result = dict(zip(OUTPUTS, features, strict=True))
    result |= {f"layer_{number:02}": state for number, state in enumerate(states)}
    return {"image": images} | {name: np.asarray(value) for name, value in result.items()}


def write_reference(model: Any, images: Array, path: Path) -> None:
    write_safetensors(path, activations(model, images))


@dataclasses.dataclass(frozen=True)
class Difference:
    """The largest difference of one value, absolute and as a part of the largest value."""

    name: str
    absolute: float
    relative: float


def verify(path: Path, reference: Path) -> list[Difference]:
    """Runs the model on the input of a reference and compares its features and layers."""
    wanted = read_safetensors(reference)
    with_layers, layers = with_layer_outputs(onnx.load(path), wanted)
    temporary = path.with_name(path.name + ".layers")
    onnx.save(with_layers, temporary)
    try:
        session = onnxruntime.InferenceSession(temporary)
        names = [value.name for value in session.get_outputs()]
        got = dict(zip(names, session.run(None, {"image": wanted["image"]}), strict=True))
    finally:
        temporary.unlink()
    pairs = {**layers, **{name: name for name in OUTPUTS}}
    return [difference(name, got[own], wanted[name]) for name, own in pairs.items()]


def with_layer_outputs(
    model: onnx.ModelProto, wanted: dict[str, Array]
) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The model with the tokens before each block as outputs: what its first norm reads.

    There are none where the opset has no LayerNormalization, or the layers are no tokens.
    """
    norms = [node.input[0] for node in model.graph.node if node.op_type == "LayerNormalization"]
    layers = sorted(name for name in wanted if name.startswith("layer_"))
    is_transformer = len(norms) in (2 * len(layers) - 1, 2 * len(layers))
    found = dict(zip(layers, norms[::2], strict=False)) if is_transformer else {}
    if len(norms) == 2 * len(layers):  # class and patch tokens have norms of their own
        found.pop(layers[-1], None)
    known = {value.name for value in model.graph.output}
    for name in found.values():
        if name not in known:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    return model, found


def difference(name: str, got: Array, wanted: Array) -> Difference:
    if wanted.size == 0:
        return Difference(name, 0.0, 0.0)
    absolute = float(np.abs(got - wanted.reshape(got.shape)).max())
    return Difference(name, absolute, absolute / float(np.abs(wanted).max()))
