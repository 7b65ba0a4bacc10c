# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, what the openvino package of this environment makes of models of one node.

An argument says how many models to leave out. The answer for each: "ok"; "wrong", other numbers
than those of ONNX Runtime or, where it has no kernel, of ONNX's reference evaluator; "unknown",
neither of them runs it; "load" or "run", the step that failed. An answer is a line, so that a run
that ends early says how far it came.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx.reference import ReferenceEvaluator
from single_nodes import Probe, all_probes

CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "1"}
ROUGH = ("kF16", "kBF16", "kF8E4M3FN", "kF8E4M3FNUZ", "kF8E5M2", "kF8E5M2FNUZ")
CORE = openvino.Core()


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        numbers = (np.arange(int(np.prod(shape))) % 5 + 1).reshape(shape)
        feeds[value.name] = numbers % 2 == 0 if dtype.kind == "b" else numbers.astype(dtype)
    return feeds


def expected(probe: Probe, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    try:
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(probe.model, providers=providers)
        return list(session.run(None, feeds))
    except Exception:  # of many types, without a common base
        pass
    try:
        return list(ReferenceEvaluator(onnx.load_from_string(probe.model)).run(None, feeds))
    except Exception:
        return None


def agree(have: np.ndarray, want: np.ndarray, dtype: str) -> bool:
    if have.shape != np.shape(want) or have.dtype != np.asarray(want).dtype:
        return False
    near, far = have.astype(np.float64), np.asarray(want).astype(np.float64)
    return np.allclose(near, far, rtol=2e-2 if dtype in ROUGH else 1e-5, atol=1e-6, equal_nan=True)


def verdict(probe: Probe) -> str:
    feeds = feeds_of(onnx.load_from_string(probe.model))
    try:
        compiled = CORE.compile_model(CORE.read_model(probe.model), "CPU", CONFIG)
    except Exception:
        return "load"
    try:
        have = [np.array(value) for value in compiled(list(feeds.values())).values()]
    except Exception:
        return "run"
    want = expected(probe, feeds)
    if want is None:
        return "unknown"
    fits = all(agree(*pair, probe.dtype) for pair in zip(have, want, strict=True))
    return "ok" if fits else "wrong"


def main() -> None:
    onnxruntime.set_default_logger_severity(4)
    np.seterr(all="ignore")
    for probe in all_probes()[int(sys.argv[1]) :]:
        print(json.dumps([probe.name, verdict(probe)]), flush=True)


if __name__ == "__main__":
    main()
