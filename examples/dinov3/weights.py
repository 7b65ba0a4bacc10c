# SPDX-License-Identifier: Apache-2.0
"""Weights of a model: their names here, in Meta's checkpoints and in Hugging Face's."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .checkpoint import Array, CheckpointError, read_pth, read_safetensors, write_safetensors
from .layers import rotary_periods
from .vit import VisionTransformer

Model = TypeVar("Model", bound=eqx.Module)


def is_weight(leaf: Any) -> bool:
    """An array, or the shape of one in a model without weights."""
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct)


def named_arrays(model: eqx.Module) -> dict[str, Any]:
    """All arrays of a model by path, such as "blocks.0.attn.qkv.weight"."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(model, is_weight))
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def with_arrays(model: Model, arrays: Mapping[str, Array]) -> Model:
    """The model with other arrays, which stay where they are: a mapped file remains one."""
    own = named_arrays(model)
    missing, unknown = sorted(own.keys() - arrays.keys()), sorted(arrays.keys() - own.keys())
    if missing or unknown:
        parts = [("missing", missing), ("unknown", unknown)]
        text = "; ".join(f"{what}: {', '.join(some[:5])}" for what, some in parts if some)
        raise CheckpointError(f"the weights are not those of this model ({text})")
    for name, value in own.items():
        if value.shape != arrays[name].shape:
            shapes = f"{arrays[name].shape}, the model needs {value.shape}"
            raise CheckpointError(f"{name} has the shape {shapes}")
    values = [np.asarray(arrays[name], own[name].dtype) for name in own]
    leaves, tree = jax.tree.flatten(model)
    given = iter(values)
    return jax.tree.unflatten(tree, [next(given) if is_weight(x) else x for x in leaves])


def empty(make: Any) -> Any:
    """A model without weights, only their shapes: make() is not computed."""
    return eqx.filter_eval_shape(make)


# --- files


def load(path: Path, model: Model) -> Model:
    """The model with the weights of a file: .pth, .safetensors of any layout, or .eqx."""
    if path.suffix == ".eqx":
        return eqx.tree_deserialise_leaves(path, model)
    state = read_pth(path) if path.suffix == ".pth" else read_safetensors(path)
    return with_arrays(model, translated(state, model))


def save(path: Path, model: eqx.Module) -> None:
    if path.suffix == ".eqx":
        eqx.tree_serialise_leaves(path, jax.tree.map(jnp.asarray, model))
    else:
        write_safetensors(path, {name: np.asarray(x) for name, x in named_arrays(model).items()})


def translated(state: Mapping[str, Array], model: eqx.Module) -> dict[str, Array]:
    """A state dict of any known layout under the names of this example."""
    if is_hugging_face(state):
        state = from_hugging_face(state)
    elif state.keys() == named_arrays(model).keys():
        return dict(state)
    arrays = from_meta(state)
    shapes = {name: value.shape for name, value in named_arrays(model).items()}
    if isinstance(model, VisionTransformer):  # a buffer that Hugging Face computes
        c = model.config
        periods = np.asarray(rotary_periods(c.width // c.heads, c.rope_base))
        arrays.setdefault("rope_embed.periods", periods)
    return {name: reshaped(value, shapes.get(name)) for name, value in arrays.items()}


def reshaped(value: Array, shape: tuple[int, ...] | None) -> Array:
    """Without the unit dims that PyTorch has and Equinox lacks, or the reverse."""
    if shape is None or [n for n in value.shape if n != 1] != [n for n in shape if n != 1]:
        return value
    return value.reshape(shape)


# --- Meta's names


# Parts that only training uses.
TRAINING_ONLY = re.compile(r"mask_token|local_cls_norm\..*|norms\..*|head\..*")


def from_meta(state: Mapping[str, Array]) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name, value in state.items():
        if TRAINING_ONLY.fullmatch(name) or name.endswith("bias_mask"):
            continue
        if name.endswith("qkv.bias"):
            stem = name.removesuffix("bias")
            arrays.update(split_bias(stem, value, state.get(stem + "bias_mask")))
        else:
            arrays[downsample_name(name)] = value
    return arrays


def split_bias(stem: str, bias: Array, mask: Array | None) -> dict[str, Array]:
    """The biases of queries, keys and values; one that the mask sets to 0 is left out."""
    parts = np.split(bias, 3)
    masks = [None] * 3 if mask is None else np.split(mask.astype(bias.dtype), 3)
    result = {}
    for number, (part, one) in enumerate(zip(parts, masks, strict=True)):
        if one is not None and np.isnan(one).any():
            raise CheckpointError(f"{stem}bias_mask was not initialised: it holds NaN")
        if one is None or one.any():
            result[f"{stem}biases.{number}"] = part if one is None else part * one
    return result


def downsample_name(name: str) -> str:
    """ConvNeXt's norm and convolution of a stage by what they are, not by their order."""
    match = re.fullmatch(r"downsample_layers\.(\d)\.(\d)\.(\w+)", name)
    if match is None:
        return name
    stage, place, what = match.groups()
    is_conv = (place == "0") == (stage == "0")
    return f"downsample_layers.{stage}.{'conv' if is_conv else 'norm'}.{what}"


# --- Hugging Face's names, as Meta's

RENAMES = [
    (r"^(model|encoder)\.", ""),
    (r"^embeddings\.patch_embeddings\.", "patch_embed.proj."),
    (r"^embeddings\.register_tokens", "storage_tokens"),
    (r"^embeddings\.", ""),
    (r"^rope_embeddings\.", "rope_embed."),
    (r"^layer\.", "blocks."),
    (r"\.attention\.o_proj\.", ".attn.proj."),
    (r"\.attention\.", ".attn."),
    (r"\.layer_scale(\d)\.lambda1", r".ls\1.gamma"),
    (r"^stages\.(\d)\.downsample_layers\.(\d)\.", r"downsample_layers.\1.\2."),
    (r"^stages\.(\d)\.layers\.(\d+)\.", r"stages.\1.\2."),
    (r"\.depthwise_conv\.", ".dwconv."),
    (r"\.pointwise_conv(\d)\.", r".pwconv\1."),
    (r"layer_norm\.", "norm."),
]
GATED = {"gate_proj": "w1", "up_proj": "w2", "down_proj": "w3"}
PLAIN = {"up_proj": "fc1", "down_proj": "fc2"}


def is_hugging_face(state: Mapping[str, Array]) -> bool:
    marks = r"embeddings\.|\.q_proj\.|\.depthwise_conv\."
    return any(re.search(marks, name) for name in state)


def from_hugging_face(state: Mapping[str, Array]) -> dict[str, Array]:
    """The same weights under Meta's names, with queries, keys and values joined again."""
    mlp = GATED if any(".gate_proj." in name for name in state) else PLAIN
    renamed = {}
    for name, value in state.items():
        for pattern, replacement in RENAMES:
            name = re.sub(pattern, replacement, name)
        for own, meta in mlp.items():
            name = name.replace(f".{own}.", f".{meta}.")
        renamed[name] = value
    return joined_projections(renamed)


def joined_projections(state: Mapping[str, Array]) -> dict[str, Array]:
    result: dict[str, Array] = {}
    for name, value in state.items():
        match = re.fullmatch(r"(.*\.attn)\.([qkv])_proj\.(\w+)", name)
        if match is None:
            result[name] = value
            continue
        stem, which, what = match.groups()
        if what == "bias":
            result[f"{stem}.qkv.biases.{'qkv'.index(which)}"] = value
        elif which == "q":
            parts = [state[f"{stem}.{one}_proj.{what}"] for one in "qkv"]
            result[f"{stem}.qkv.{what}"] = np.concatenate(parts)
    return result
