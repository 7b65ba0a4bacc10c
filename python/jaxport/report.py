# SPDX-License-Identifier: Apache-2.0
"""What raising found in a program: to_onnx(..., report=) and Model.report."""

from __future__ import annotations

import dataclasses
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

# What to_onnx takes: a file name, a function that gets the report, or True to print it.
Wanted = str | os.PathLike[str] | Callable[["Report"], Any] | bool | None


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
    """

    raised: tuple[Finding, ...]
    near_misses: tuple[Finding, ...]
    left_out: tuple[Finding, ...] = ()

    @classmethod
    def of(
        cls,
        findings: Iterable[tuple[str, str, str]],
        left_out: Iterable[tuple[str, str, str]],
        line_of: Callable[[str], str],
    ) -> Report:
        all_findings = [Finding(*found, line_of(found[2])) for found in findings]
        return cls(
            tuple(finding for finding in all_findings if not finding.reason),
            tuple(finding for finding in all_findings if finding.reason),
            tuple(Finding(*found, line_of(found[2])) for found in dict.fromkeys(left_out)),
        )

    def __str__(self) -> str:
        counts = ", ".join(
            f"{n} {rule}" for rule, n in Counter(f.rule for f in self.raised).items()
        )
        lines = [f"raised: {counts or 'nothing'}", *(f"  {f}" for f in self.raised)]
        lines += [f"near misses: {len(self.near_misses)}", *(f"  {f}" for f in self.near_misses)]
        if self.left_out:
            lines += [f"left out: {len(self.left_out)}", *(f"  {f}" for f in self.left_out)]
        return "\n".join(lines)

    def json(self) -> str:
        """The report as JSON: "raised", "near_misses" and "left_out", lists of objects."""
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
