# SPDX-License-Identifier: Apache-2.0
"""What jaxport.verify found, as data and as a table."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal

import numpy as np

from .tolerances import Array, allowed, distance, histogram, near, same, ulps

Verdict = Literal["same", "unstable", "different"]


@dataclasses.dataclass(frozen=True)
class Output:
    """One result of one run.

    Attributes:
        verdict: "same": within the tolerances. "unstable": it differs by no more than rounding does
            in JAX itself, as a run in 64 bits shows. "different": the model is off.
        problem: what else than the numbers differs, such as the shape; else "".
        largest_difference: of an element; that of the worst is in `index`, `jax` and `model`.
        ulps: the largest error in units in the last place.
        share: the largest error as a part of what is allowed.
        histogram: elements by their errors in units in the last place, up to powers of ten.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    verdict: Verdict
    problem: str = ""
    largest_difference: float = 0.0
    ulps: float = 0.0
    share: float = 0.0
    index: tuple[int, ...] = ()
    jax: str = ""
    model: str = ""
    histogram: dict[str, int] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, name: str, want: Array, have: Array) -> Output:
        about = (name, want.dtype.name, want.shape)
        for what in ("shape", "dtype"):
            if getattr(want, what) != getattr(have, what):
                kinds = f"{getattr(want, what)} in JAX, {getattr(have, what)} in the model"
                return cls(*about, "different", f"another {what}: {kinds}")
        if not want.size:
            return cls(*about, "same")
        apart, errors = distance(want, have), ulps(want, have)
        with np.errstate(all="ignore"):
            shares = np.where(same(want, have), 0.0, apart / allowed(want, have))
        index = np.unravel_index(int(np.argmax(np.nan_to_num(shares, posinf=1e300))), want.shape)
        return cls(
            *about,
            "same" if near(want, have).all() else "different",
            largest_difference=float(apart.max()),
            ulps=float(errors.max()),
            share=float(shares[index]),
            index=tuple(int(i) for i in index),
            jax=str(want[index]),
            model=str(have[index]),
            histogram=histogram(errors),
        )


@dataclasses.dataclass(frozen=True)
class Check:
    """One run of JAX and of the model.

    Attributes:
        sizes: of the symbolic dims.
        inputs: "given" or "generated".
        inputs_sha256: of the numbers that both were fed with.
        skipped: why there was no run at these sizes, else "".
    """

    sizes: dict[str, int]
    inputs: str
    inputs_sha256: str = ""
    outputs: tuple[Output, ...] = ()
    skipped: str = ""

    @property
    def verdict(self) -> Verdict:
        found = {output.verdict for output in self.outputs}
        return (
            "different" if "different" in found else "unstable" if "unstable" in found else "same"
        )


@dataclasses.dataclass(frozen=True)
class Place:
    """Where the model parts from JAX.

    Attributes:
        source, source_line: the user's line, "model.py:42 in Net.__call__", and its text.
        equation: the first equation whose result the model does not have, with types.
        loop: the steps of loops and branches around it, outermost first.
        swallowed: further equations that the node may stand for: the model has none of their
            results.
        node, op: the name and the operator of the first node whose result JAX does not have.
        node_source: where that node comes from by its own metadata.
        ulps, histogram: of the node's result beside the equation's, where they can be compared.
    """

    source: str
    source_line: str
    equation: str
    loop: tuple[str, ...]
    swallowed: tuple[str, ...]
    node: str
    op: str
    node_source: str
    ulps: float | None = None
    histogram: dict[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Replay:
    """A small program that shows the difference.

    Attributes:
        folder: holds program.jir, inputs.npz and, of the node that differs, node.onnx.
        equations: of program.jir.
        reproduces: whether the program, converted anew, differs too. If not, the fault is in the
            file of the model, not in the compiler.
    """

    folder: str
    equations: int
    reproduces: bool


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a model gives JAX's numbers; str() gives a table.

    Attributes:
        verdict: the worst of all outputs; "unstable" is no failure.
        checks: what was run.
        at_fault: who is off: "" when nobody, "model", or "runtime" when the model is right without
            ONNX Runtime's optimisations of graphs.
        place: where it is off, when that was found.
        replay: a small program that shows it.
        notes: what could not be found out, and why.
        versions: of jax, jaxport, onnxruntime and of the table of kernels that jaxport knows.
        model_sha256: of the file, or of its bytes.
        external_sha256: of the files beside it that hold its tensors, by name.
        model_runs, jax_runs: how often each was run to compare the outputs.
    """

    verdict: Verdict
    checks: tuple[Check, ...]
    at_fault: str = ""
    place: Place | None = None
    replay: Replay | None = None
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    model_sha256: str = ""
    external_sha256: dict[str, str] = dataclasses.field(default_factory=dict)
    model_runs: int = 0
    jax_runs: int = 0

    @property
    def ok(self) -> bool:
        return self.verdict != "different"

    def __bool__(self) -> bool:
        return self.ok

    def data(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and dicts."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    def json(self) -> str:
        return json.dumps(self.data(), indent=2)

    def __str__(self) -> str:
        from .table import text_of

        return text_of(self)
