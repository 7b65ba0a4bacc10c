# SPDX-License-Identifier: Apache-2.0
"""Where models run: runtimes and versions, and how a process that runs models there is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from runtime_versions import OPENVINO, RELEASES, TRACT, WEB, environment, node_modules

from jaxport import _core

RUNNERS = Path(__file__).parent / "runners"
DEFAULT_OPSET = 23  # of to_onnx
ONNXRUNTIME = ("1.17", "1.20", "1.23", "1.25", "1.28", "1.30", "1.31")
Start = tuple[list[str], dict[str, str]]  # a command, without the folder, and its environment


@dataclass(frozen=True)
class Place:
    """A runtime in one version. `title` names it in docs/runtimes.md, `key` on the command line."""

    key: str
    title: str
    target: str  # what models are made for
    opset: int
    start: Callable[[Path], Start]  # from the folder of the models; installs what is missing
    seconds: float = 120  # that a model may take
    # Whether arrays of bfloat16 and of 8-bit floats cross its border. Elsewhere models take and
    # give f32, with a Cast.
    takes_small_floats: bool = True
    # Whether f64 is computed in f64. Elsewhere results are compared at the tolerances of f32.
    has_f64: bool = True


def places() -> dict[str, Place]:
    every = [place for version in ONNXRUNTIME for place in onnxruntime(version)]
    every += [*map(web, ("node", "wasm", "webgpu")), *map(openvino, OPENVINO), tract(), reference()]
    return {place.key: place for place in every}


def runner(name: str, folder: Path, env: dict[str, str], *more: str) -> Start:
    return [sys.executable, str(RUNNERS / name), str(folder), *more], env


def onnxruntime(version: str) -> Iterator[Place]:
    """At the opset of to_onnx, or the newest that is older, and at the newest that is newer."""
    newest = _core.newest_opset(f"onnxruntime=={version}")
    for opset in sorted({min(DEFAULT_OPSET, newest), newest}):
        suffix = f"-opset{opset}" if opset > DEFAULT_OPSET else ""
        yield Place(
            f"onnxruntime-{version}{suffix}",
            f"ONNX Runtime {RELEASES[version]}",
            "onnxruntime",
            opset,
            lambda folder: runner(
                "on_onnxruntime.py", folder, environment("onnxruntime", RELEASES[version])
            ),
            takes_small_floats=version not in ("1.17",),
        )


def web(kind: str) -> Place:
    titles = {"node": "WASM, Node.js", "wasm": "WASM, Chromium", "webgpu": "WebGPU, Chromium"}
    return Place(
        f"web-{kind}",
        f"ONNX Runtime Web {WEB} ({titles[kind]})",
        "onnxruntime-web",
        DEFAULT_OPSET,
        lambda folder: runner("on_web.py", folder, dict(os.environ), kind, str(node_modules(WEB))),
        takes_small_floats=False,
    )


def openvino(version: str) -> Place:
    return Place(
        f"openvino-{version}",
        f"OpenVINO {OPENVINO[version]}",
        "openvino",
        DEFAULT_OPSET,
        lambda folder: runner("on_openvino.py", folder, environment("openvino", OPENVINO[version])),
        has_f64=False,
    )


def tract() -> Place:
    return Place(
        "tract",
        f"tract {TRACT}",
        "onnx",
        18,
        lambda folder: runner("on_tract.py", folder, environment("tract", TRACT)),
        takes_small_floats=False,
    )


def reference() -> Place:
    return Place(
        "reference",
        "ONNX reference evaluator",
        "onnx",
        DEFAULT_OPSET,
        lambda folder: runner("on_reference.py", folder, dict(os.environ)),
    )
