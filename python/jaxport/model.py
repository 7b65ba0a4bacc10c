# SPDX-License-Identifier: Apache-2.0
"""A finished ONNX model in memory."""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .errors import ConversionError
from .ort_format import SUFFIX as ORT_SUFFIX
from .ort_format import save_ort
from .session import watched

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx_ir

    from . import _core
    from .report import Report
    from .session import Limits
    from .verification.results import Verification

# Tensors of at least this many bytes may leave the file; protobuf ends at 2 GiB.
EXTERNAL_DATA_THRESHOLD = 1024
NO_EXTERNAL_DATA = 2**64 - 1  # as a threshold: no tensor has so many bytes
INLINE_LIMIT = 1_900_000_000


def package(name: str) -> Any:
    """A package that only some results need. Raises ConversionError E075 when it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConversionError(
            "E075",
            f"the package {name} is missing, which this return_mode needs",
            help=f"pip install {name.replace('_', '-')}, or use return_mode 'model' or 'file'",
        ) from error


class Model:
    """What to_onnx(..., return_mode="model") gives: a model that is compiled but not written.

    Attributes:
        times: seconds of "trace", "compile" and, after save(), "write".
        report: what was raised, and what nearly was and why not.
        parameters: what to feed to the inputs that to_onnx(params_as_inputs=) asked for, by name.
        state: what to feed to the inputs that stand for state in the first run, by name.
        verification: what to_onnx(verify=True) found, else None.
        errors: how far each node is from JAX, when both `verify` and a page were asked for.
    """

    def __init__(
        self,
        compiled: _core.Model,
        module: _core.Module,
        times: dict[str, float],
        report: Report,
        *,
        parameters: dict[str, np.ndarray[Any, Any]] | None = None,
        state: dict[str, np.ndarray[Any, Any]] | None = None,
        external_data_threshold: int = EXTERNAL_DATA_THRESHOLD,
        inline_limit: int = INLINE_LIMIT,
        source_locations: bool = True,
        explore: Callable[[], str] = lambda: "{}",
        lines_of: Callable[[str], Sequence[str]] = lambda file: (),
        limits: Limits | None = None,
        import_seconds: float | None = None,
    ) -> None:
        self._compiled = compiled
        self._module = module
        self._external_data_threshold = external_data_threshold
        self._inline_limit = inline_limit
        self._source_locations = source_locations
        self._limits = limits
        self._import_seconds = import_seconds
        self.times = times
        self.report = report
        self.parameters = parameters or {}
        self.state = state or {}
        self.verification: Verification | None = None
        self.errors: tuple[dict[str, Any], ...] = ()
        self._explore = explore
        self.lines_of = lines_of

    def save(self, path: str | os.PathLike[str]) -> str:
        """Writes the model, with large tensors in "<path>.data" when one file cannot hold it.

        A name that ends in .ort is written in ORT format, by the installed ONNX Runtime. Raises
        ConversionError E051 (E112) and leaves no file behind when it cannot be written.
        """
        start = time.perf_counter()
        if os.fspath(path).endswith(ORT_SUFFIX):
            save_ort(self.to_bytes(), path)
            self.times["write"] = time.perf_counter() - start
            return os.fspath(path)
        with watched(self._limits) as session:
            self._compiled.save(
                session,
                os.fspath(path),
                external_threshold=self._external_data_threshold,
                inline_limit=self._inline_limit,
                source_locations=self._source_locations,
            )
        self.times["write"] = time.perf_counter() - start
        return os.fspath(path)

    def to_bytes(self) -> bytes:
        """The model as one protobuf message. Raises ConversionError E050 beyond 2 GiB."""
        return self._compiled.to_bytes(source_locations=self._source_locations)

    def to_proto(self) -> onnx.ModelProto:
        """The model as an onnx.ModelProto. Raises ConversionError E075 without that package."""
        proto: onnx.ModelProto = package("onnx").ModelProto.FromString(self.to_bytes())
        return proto

    def to_ir(self) -> onnx_ir.Model:
        """The model as an onnx_ir.Model, of any size. Raises ConversionError E075 without it."""
        ir = package("onnx_ir")
        model: onnx_ir.Model
        if self.fits_one_file:
            model = ir.from_proto(self.to_proto())
            return model
        with tempfile.TemporaryDirectory() as folder:
            on_disk = ir.load(self.save(os.path.join(folder, "model.onnx")))
            model = ir.external_data.load_to_model(on_disk)
        return model

    def text(self) -> str:
        """The model in ONNX's text syntax."""
        return self._compiled.text()

    def jir(self) -> str:
        """The traced program with the options of its conversion, which `jaxport replay` reads."""
        return self._compiled.case_header + self._module.text()

    def stats(self) -> dict[str, Any]:
        """Counts: "nodes", "ops" by name, "parameters", "initializer_bytes", "custom_ops" that
        neither ONNX nor a function of the model defines, and "passes": the "changes" and "seconds"
        of each pass on the ONNX graph, in order."""
        return self._compiled.stats()

    def interface(self) -> dict[str, list[tuple[str, str]]]:
        """Names and types of "inputs" and "outputs", such as ("x", "f32[B,4]")."""
        return self._compiled.interface()

    def explored(self) -> str:
        """What the compiler has for a page, as JSON. It compiles the program once more."""
        return self._explore()

    @property
    def title(self) -> str:
        """The name of what was converted."""
        return self._module.name

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Writes the page that shows the model beside its program, docs/report.md.

        Raises ConversionError E113 when this installation has no page.
        """
        from .explorer.data import of_model
        from .explorer.page import write_page

        write_page(of_model(self), path)

    def show(self, height: int = 720) -> Any:
        """The same page inside of a notebook (Jupyter, Colab, marimo); elsewhere in the browser."""
        from .explorer.notebook import show

        return show(self, height)

    def __repr__(self) -> str:
        from .explorer.notebook import line

        return line(self)

    def _repr_html_(self) -> str:
        from .explorer.notebook import summary

        return summary(self)

    @property
    def requires(self) -> str:
        """The oldest runtime that was kept in mind, such as "onnxruntime>=1.23"."""
        return self._compiled.requires

    @property
    def fits_one_file(self) -> bool:
        """Whether to_bytes() can hold the model."""
        return bool(self.stats()["initializer_bytes"] <= self._inline_limit)

    @property
    def stage_times(self) -> dict[str, float]:
        """Seconds in each stage of the compiler; "import" reads what JAX traced."""
        imported = {} if self._import_seconds is None else {"import": self._import_seconds}
        return {**imported, **self._compiled.stage_times}

    @property
    def remarks(self) -> list[str]:
        """Why rules that nearly fired did not, one line each."""
        return [str(finding) for finding in self.report.near_misses]
