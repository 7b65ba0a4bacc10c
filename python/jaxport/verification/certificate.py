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
    """Of a file, or of the bytes of a model in memory."""
    if isinstance(model, str | os.PathLike):
        return _of_file(os.fspath(model))
    if isinstance(model, Model):
        model = model.to_bytes()
    elif hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    return hashlib.sha256(model).hexdigest()


def external_sha256_of(model: Any) -> dict[str, str]:
    """Of the files beside a model that hold its tensors, by their names."""
    if not isinstance(model, str | os.PathLike):
        return {}
    path = os.fspath(model)
    return {name: _of_file(_beside(path, name)) for name in external_files(path)}


def _of_file(path: str) -> str:
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def external_files(path: str) -> list[str]:
    """The names of the files that a model keeps tensors in, sorted."""
    return sorted(set(_locations(package("onnx").load(path, load_external_data=False))))


def _beside(path: str, name: str) -> str:
    """A file in the folder of a model. Raises ConversionError E102 for one that is elsewhere."""
    folder = os.path.realpath(os.path.dirname(path))
    file = os.path.realpath(os.path.join(folder, name))
    if file.startswith(os.path.join(folder, "")):
        return file
    raise ConversionError(
        "E102",
        f"the model '{path}' keeps tensors outside of its folder: {name}",
        help="move the file into the folder of the model",
    )


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
        "external_sha256": found.external_sha256,
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
        return f"{model} was changed after it was verified"
    for name, expected in data["external_sha256"].items():
        file = _beside(model, name)
        if not os.path.exists(file) or _of_file(file) != expected:
            return f"{name} was changed after it was verified"
    return ""


def read_certificate(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, first_line(error)) from error
    fields = {"external_sha256", "format", "model_sha256"}
    no_certificate = _unreadable(path, "it is no certificate of this version")
    if not isinstance(data, dict) or not fields <= data.keys():
        raise no_certificate
    if data["format"] != FORMAT or not isinstance(data["external_sha256"], dict):
        raise no_certificate
    return data


def _unreadable(path: str, why: str) -> ConversionError:
    return ConversionError(
        "E102",
        f"certificate '{path}' cannot be used: {why}",
        help="write one with jaxport.verify(fn, model, inputs, certificate=...)",
    )
