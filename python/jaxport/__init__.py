# SPDX-License-Identifier: Apache-2.0
"""Turns JAX functions into ONNX models.

Nothing heavy is imported before it is used: each name loads its module on first access.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import testing as testing
    from .agreement import allclose as allclose
    from .api import to_onnx as to_onnx
    from .comparison import Comparison as Comparison
    from .comparison import compare as compare
    from .decompose import register_decomposition as register_decomposition
    from .errors import ConversionError as ConversionError
    from .functions import onnx_function as onnx_function
    from .lowering import register_lowering as register_lowering
    from .model import Model as Model
    from .optimizer import optimize as optimize
    from .profiling import Profile as Profile
    from .profiling import profile as profile
    from .report import Report as Report
    from .session import Limits as Limits
    from .verification.results import Verification as Verification
    from .verification.verify import verify as verify
    from .web import allclose_onnxruntime_web as allclose_onnxruntime_web

    __version__: str

_HOMES = {
    "Comparison": "comparison",
    "ConversionError": "errors",
    "Limits": "session",
    "Model": "model",
    "Profile": "profiling",
    "Report": "report",
    "Verification": "verification.results",
    "allclose": "agreement",
    "allclose_onnxruntime_web": "web",
    "compare": "comparison",
    "onnx_function": "functions",
    "optimize": "optimizer",
    "profile": "profiling",
    "register_decomposition": "decompose",
    "register_lowering": "lowering",
    "to_onnx": "api",
    "verify": "verification.verify",
}
_MODULES = ("testing",)

__all__ = [
    "Comparison",
    "ConversionError",
    "Limits",
    "Model",
    "Profile",
    "Report",
    "Verification",
    "allclose",
    "allclose_onnxruntime_web",
    "compare",
    "onnx_function",
    "optimize",
    "profile",
    "register_decomposition",
    "register_lowering",
    "to_onnx",
    "verify",
]


def _load(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("jaxport")
    elif name in _MODULES:
        value = importlib.import_module(f"{__name__}.{name}")
    elif name in _HOMES:
        value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # type checkers know the names from the imports above
    __getattr__ = _load


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES, "__version__"])
