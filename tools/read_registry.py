#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints, as JSON, what the onnxruntime package of this environment says about its CPU provider.

Standard input has models to load, {name: base64}; the answer says which of them do. No package but
onnxruntime is imported, so that this runs in an environment that has nothing else.
"""

import base64
import json
import sys

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as registry

CPU = "CPUExecutionProvider"


def loads(model: bytes) -> bool:
    try:
        onnxruntime.InferenceSession(model, providers=[CPU])
    except Exception:  # the package has one type for each status, without a common base
        return False
    return True


def main() -> None:
    onnxruntime.set_default_logger_severity(4)  # a model that does not load is an answer
    probes = json.load(sys.stdin)
    answer = {
        "version": onnxruntime.__version__,
        "schemas": [
            (schema.name, schema.since_version)
            for schema in registry.get_all_operator_schema()
            if schema.domain == ""
        ],
        "kernels": [
            (kernel.op_name, *kernel.version_range, kernel.type_constraints)
            for kernel in registry.get_all_opkernel_def()
            if kernel.domain == "" and kernel.provider == CPU
        ],
        "loads": [name for name, model in probes.items() if loads(base64.b64decode(model))],
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
