# SPDX-License-Identifier: Apache-2.0
"""Certificates: what was compared, kept beside a model."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from ..errors import ConversionError, first_line
from ..model import Model
from .results import Output, Verification

FORMAT = 1


def sha256_of(model: Any) -> str:
    """Of a file and the files that hold its tensors, or of the bytes of a model in memory."""
    if isinstance(model, str | os.PathLike):
        return _of_file(os.fspath(model))
    if isinstance(model, Model):
        model = model.to_bytes()
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    return hashlib.sha256(model).hexdigest()


def _of_file(path: str) -> str:
    state = hashlib.sha256()
    for name in [path, *external_files(path)]:
        with open(name, "rb") as file:
            while block := file.read(1 << 20):
                state.update(block)
    return state.hexdigest()


def external_files(path: str) -> list[str]:
    """The files that a model keeps tensors in: jaxport has one, "<path>.data"."""
    beside = path + ".data"
    return [beside] if os.path.exists(beside) else []


def write_certificate(found: Verification, path: str | os.PathLike[str]) -> None:
    """Writes what was compared; the same comparison gives the same bytes."""
    data = {
        "format": FORMAT,
        "model_sha256": found.model_sha256,
        "verdict": found.verdict,
        "checks": [
            {
                "sizes": check.sizes,
                "inputs": check.inputs,
                "inputs_sha256": check.inputs_sha256,
                "skipped": check.skipped,
                "outputs": [_errors(output) for output in check.outputs],
            }
            for check in found.checks
        ],
        "versions": found.versions,
    }
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(data, indent=2) + "\n")


def _errors(output: Output) -> dict[str, Any]:
    fields = ("name", "dtype", "shape", "verdict", "largest_difference", "ulps", "share")
    return {name: getattr(output, name) for name in fields}


def problem_of(model: str, certificate: str) -> str:
    """Why a certificate does not belong to a file, "" when it does. Raises ConversionError E095."""
    data = read_certificate(certificate)
    if data["model_sha256"] != sha256_of(model):
        return "the model was changed after it was verified"
    return ""


def read_certificate(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise _unreadable(path, first_line(error)) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT or "model_sha256" not in data:
        raise _unreadable(path, "it is no certificate of this version")
    return data


def _unreadable(path: str, why: str) -> ConversionError:
    return ConversionError(
        "E095",
        f"certificate '{path}' cannot be used: {why}",
        help="write one with jaxport.verify(fn, model, inputs, certificate=...)",
    )
