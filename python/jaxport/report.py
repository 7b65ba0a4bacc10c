# SPDX-License-Identifier: Apache-2.0
"""What raising found in a program: to_onnx(..., report=) and Model.report."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from .precision import OutputError, PrecisionReport

# What to_onnx takes: a file name, a function that gets the report, or True to print it.
Wanted = str | os.PathLike[str] | Callable[["Report"], Any] | bool | None


def wants_page(wanted: Wanted) -> bool:
    """Whether the report is to be a page, docs/report.md."""
    return isinstance(wanted, str | os.PathLike) and os.fspath(wanted).endswith(".html")


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that became one node, or the reason why it did not.

    Attributes:
        rule: the name of the rule, such as "attention"; to_onnx(without_rules=) takes it.
        reason: why it was not raised; empty when it was.
        source: the place in the user's code, such as "model.py:42 in Block.__call__".
        line: the text of that line, if the file is there.
    """

    rule: str
    reason: str
    source: str
    line: str

    def __str__(self) -> str:
        what = f"{self.rule}: {self.reason}" if self.reason else self.rule
        where = f"  at {self.source}" if self.source else ""
        return f"{what}{where}{':  ' + self.line if self.line else ''}"


@dataclasses.dataclass(frozen=True)
class Report:
    """What was raised, what nearly was, and what the model does without, in program order.

    `rule` of what is left out is the primitive: "cond" for a branch that only raises an error,
    "debug_callback" for a print; or "state" for state that a call changes and the model does not.
    `custom_ops` are the equations that became nodes of the domain jaxport.custom, which you
    implement in the runtime: `rule` is the primitive and the name of the op.
    """

    raised: tuple[Finding, ...]
    near_misses: tuple[Finding, ...]
    left_out: tuple[Finding, ...] = ()
    custom_ops: tuple[Finding, ...] = ()
    precision: PrecisionReport | None = None  # of to_onnx(precision=)

    @classmethod
    def of(
        cls,
        findings: Iterable[tuple[str, str, str]],
        left_out: Iterable[tuple[str, str, str]],
        line_of: Callable[[str], str],
        custom_ops: Iterable[tuple[str, str, str, int]] = (),
    ) -> Report:
        all_findings = [Finding(*found, line_of(found[2])) for found in findings]
        return cls(
            tuple(finding for finding in all_findings if not finding.reason),
            tuple(finding for finding in all_findings if finding.reason),
            tuple(Finding(*found, line_of(found[2])) for found in dict.fromkeys(left_out)),
            tuple(
                Finding(name, _with_uses(reason, uses), source, line_of(source))
                for name, reason, source, uses in custom_ops
            ),
        )

    def with_precision(self, dtype: str, counts: dict[str, Any]) -> Report:
        """The same for a model in half precision."""
        if dtype == "f32":
            return self
        return dataclasses.replace(self, precision=PrecisionReport(dtype, **counts))

    def with_errors(self, errors: tuple[OutputError, ...], note: str) -> Report:
        """The same with what halves cost, which was measured."""
        if self.precision is None:
            return self
        precision = dataclasses.replace(self.precision, errors=errors, note=note)
        return dataclasses.replace(self, precision=precision)

    def __str__(self) -> str:
        counts = ", ".join(
            f"{n} {rule}" for rule, n in Counter(f.rule for f in self.raised).items()
        )
        lines = [f"raised: {counts or 'nothing'}", *(f"  {f}" for f in self.raised)]
        lines += [f"near misses: {len(self.near_misses)}", *(f"  {f}" for f in self.near_misses)]
        if self.left_out:
            lines += [f"left out: {len(self.left_out)}", *(f"  {f}" for f in self.left_out)]
        if self.custom_ops:
            lines += [f"left to you: {len(self.custom_ops)}", *(f"  {f}" for f in self.custom_ops)]
        if self.precision:
            lines.append(str(self.precision))
        return "\n".join(lines)

    def json(self) -> str:
        """The report as JSON: lists, "raised" and the others by their names, and "precision"."""
        return json.dumps(dataclasses.asdict(self), indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes JSON when the name ends in .json, else text."""
        text = self.json() if os.fspath(path).endswith(".json") else str(self)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def give(self, wanted: Wanted) -> None:
        """Hands the report to whom to_onnx(report=) names."""
        if callable(wanted):
            wanted(self)
        elif wanted is True:
            print(self)
        elif isinstance(wanted, (str, os.PathLike)):
            self.save(wanted)


def _with_uses(reason: str, uses: int) -> str:
    return f"{reason} ({uses} use{'' if uses == 1 else 's'})"
