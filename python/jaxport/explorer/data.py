# SPDX-License-Identifier: Apache-2.0
"""What a page shows: the compiler's data, with what only Python has."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from .. import _core
from .page import lines_from_here, source_files

if TYPE_CHECKING:
    from ..model import Model
    from ..profiling import Profile


def page_data(
    compiled: str,
    title: str,
    lines_of: Callable[[str], Sequence[str]] = lines_from_here,
    profile: Profile | None = None,
) -> dict[str, Any]:
    """The data of a page from that of the compiler, which is JSON."""
    data: dict[str, Any] = json.loads(compiled)
    data["title"] = title
    data["version"] = metadata.version("jaxport")
    data["files"] = source_files(data["sources"], lines_of)
    if profile is not None:
        data["profile"] = profile.data()
    return data


def of_file(path: str | os.PathLike[str], profile: Profile | None = None) -> dict[str, Any]:
    """Of an ONNX file, whoever made it."""
    return page_data(_core.explore_model(os.fspath(path)), os.path.basename(path), profile=profile)


def of_model(model: Model, profile: Profile | None = None) -> dict[str, Any]:
    """Of a model that was just converted, beside its program."""
    data = page_data(model.explored(), model.title, model.lines_of, profile)
    data["left_out"] = [str(finding) for finding in model.report.left_out]
    if model.verification is not None:
        found = model.verification.data()
        data["verification"] = _finite(found)
        data["errors"] = [dict(error) for error in model.errors]
    return data


def _finite(value: Any) -> Any:
    """JSON has no infinity; the page shows 1e999 as such."""
    if isinstance(value, float) and value != value:
        return None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return 1e308 if value > 0 else -1e308
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list) else value
