# SPDX-License-Identifier: Apache-2.0
"""jaxport.allclose_onnxruntime_web: does a model give the same numbers in a browser?"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import runtime
from ..agreement import compare, example_arguments, model_feeds
from ..inputs import Inputs
from . import browser

_RUNNERS = {"node": "node", "chrome": "chrome", "browser": "chrome"}


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
    """Compares ONNX Runtime Web (WebAssembly) with ONNX Runtime: values, shapes and dtypes.

    Args:
        onnx_model_path: a model in one file, such as to_onnx(..., export_mode="web") writes.
        inputs: arrays, or shapes, filled from a fixed seed.
        input_params: values of inputs by name.
        rtol, atol: |native - web| <= atol + rtol * |native| must hold everywhere.
        inputs_as_nchw: positions of inputs that are given as (N, H, W, C) and fed as (N, C, H, W).
        node_command: the Node.js to run.
        runner: "node", or "chrome" for a browser without a window.

    The npm package onnxruntime-web is looked up in $NODE_PATH and in the folders node_modules of
    the working directory and its parents.

    Returns:
        Whether everything fits, and a message: the worst difference, or what is missing.
    """
    kind = _RUNNERS.get((runner or "node").strip().lower())
    if kind is None:
        return False, f"there is no runner {runner!r}; use 'node' or 'chrome'"
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
    tensors = [_to_json(name, array) for name, array in zip(names, feeds, strict=True)]
    model = Path(onnx_model_path).resolve()
    try:
        if kind == "chrome":
            outputs = browser.run(node_modules, model, tensors)
        else:
            outputs = _run_in_node(node_command, node_modules, model, tensors)
    except (OSError, RuntimeError) as error:
        return False, f"ONNX Runtime Web cannot run the model: {error}"
    return compare(expected, dict(map(_from_json, outputs)), rtol, atol)


def _node_modules() -> Path | None:
    """The folder that holds the package onnxruntime-web."""
    here = Path.cwd()
    named = [Path(entry) for entry in os.environ.get("NODE_PATH", "").split(os.pathsep) if entry]
    folders = [*named, *(folder / "node_modules" for folder in [here, *here.parents])]
    return next((f for f in folders if (f / "onnxruntime-web" / "package.json").exists()), None)


def _run_in_node(
    command: str, node_modules: Path, model: Path, tensors: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    script = Path(__file__).parent / "node.mjs"
    done = subprocess.run(
        [command, str(script), str(node_modules), str(model)],
        input=json.dumps(tensors),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"node ended with {done.returncode}")
    outputs: list[dict[str, Any]] = json.loads(done.stdout)
    return outputs


def _to_json(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"name": name, "type": array.dtype.name, "dims": array.shape, "data": data}


def _from_json(tensor: dict[str, Any]) -> tuple[str, np.ndarray[Any, Any]]:
    array = np.frombuffer(base64.b64decode(tensor["data"]), tensor["type"])
    return tensor["name"], array.reshape(tensor["dims"])
