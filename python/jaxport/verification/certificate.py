# SPDX-License-Identifier: Apache-2.0
"""Certificates: what was compared, kept beside a model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any

from ..errors import ConversionError, first_line
from ..model import Model, package
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
    """The files that a model keeps tensors in, sorted."""
    proto = package("onnx").load(path, load_external_data=False)
    folder = os.path.realpath(os.path.dirname(path))
    found = set()
    for name in _locations(proto):
        file = os.path.realpath(os.path.join(folder, name))
        if not file.startswith(os.path.join(folder, "")):
            raise ConversionError(
                "E102",
                f"the model '{path}' keeps tensors outside of its folder: {name}",
                help="move the file into the folder of the model",
            )
        found.add(file)
    return sorted(found)


def _locations(message: Any) -> Iterator[str]:
    """The names of external files in a message and in all that it holds."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield from (entry.value for entry in message.external_data if entry.key == "location")
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from _locations(part)


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
    """Why a certificate does not belong to a file, "" when it does. Raises ConversionError E102."""
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
        "E102",
        f"certificate '{path}' cannot be used: {why}",
        help="write one with jaxport.verify(fn, model, inputs, certificate=...)",
    )
