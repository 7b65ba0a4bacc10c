# SPDX-License-Identifier: Apache-2.0
"""jaxport.allclose_onnxruntime_web: does a model give the same numbers in a browser?"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import runtime
from ..agreement import compare, example_arguments, model_feeds
from ..inputs import Inputs
from .browser import Browser
from .node import Node

_RUNNERS = {"node": "node", "chrome": "wasm", "browser": "wasm", "webgpu": "webgpu"}


def allclose_onnxruntime_web(
    onnx_model_path: str,
    inputs: Inputs,
    input_params: Mapping[str, Any] | None = None,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    *,
    inputs_as_nchw: Sequence[int] | None = None,
    node_command: str = "node",
    runner: str | None = None,
) -> tuple[bool, str]:
    """Compares ONNX Runtime Web with ONNX Runtime: values, shapes and dtypes.

    Args:
        onnx_model_path: a model in one file, such as to_onnx(..., export_mode="web") writes.
        inputs: arrays, or shapes, filled from a fixed seed.
        input_params: values of inputs by name.
        rtol, atol: |native - web| <= atol + rtol * |native| must hold everywhere.
        inputs_as_nchw: positions of inputs that are given as (N, H, W, C) and fed as (N, C, H, W).
        node_command: the Node.js to run.
        runner: "node", or "chrome" for a browser without a window; "webgpu" for one that computes
            with WebGPU what ONNX Runtime can compute there.

    The npm package onnxruntime-web is looked up in $NODE_PATH and in the folders node_modules of
    the working directory and its parents.

    Returns:
        Whether everything fits, and a message: the worst difference, or what is missing.
    """
    kind = _RUNNERS.get((runner or "node").strip().lower())
    if kind is None:
        return False, f"there is no runner {runner!r}; use 'node', 'chrome' or 'webgpu'"
    node_modules = _node_modules()
    if node_modules is None:
        return False, "onnxruntime-web is not installed; run `npm install onnxruntime-web`"
    session = runtime.open_session(onnx_model_path)
    arguments = example_arguments(inputs, dict(input_params or {}), np.float32)
    feeds = model_feeds(session, arguments, inputs_as_nchw or ())
    if isinstance(feeds, str):
        return False, feeds
    names = [value.name for value in session.get_inputs()]
    expected = list(runtime.run(session, feeds).values())
    tensors = [to_json(name, array) for name, array in zip(names, feeds, strict=True)]
    try:
        where: Node | Browser = (
            Node(node_modules, node_command) if kind == "node" else Browser(node_modules, kind)
        )
        with contextlib.closing(where):
            answer = where.infer(Path(onnx_model_path).resolve(), tensors)
    except (OSError, RuntimeError) as error:
        answer = {"error": error}
    if "error" in answer:
        return False, f"ONNX Runtime Web cannot run the model: {answer['error']}"
    outputs = dict(map(from_json, answer["outputs"]))
    return compare(expected, outputs, rtol, atol)


def _node_modules() -> Path | None:
    """The folder that holds the package onnxruntime-web."""
    here = Path.cwd()
    named = [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    folders = [*named, *(folder / "node_modules" for folder in [here, *here.parents])]
    return next((f for f in folders if (f / "onnxruntime-web" / "package.json").exists()), None)


def to_json(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array as infer.mjs takes it."""
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"name": name, "type": array.dtype.name, "dims": array.shape, "data": data}


def from_json(tensor: dict[str, Any]) -> tuple[str, np.ndarray[Any, Any]]:
    """Name and values of an array that infer.mjs gave."""
    array = np.frombuffer(base64.b64decode(tensor["data"]), tensor["type"])
    return tensor["name"], array.reshape(tensor["dims"])
