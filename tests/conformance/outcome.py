# SPDX-License-Identifier: Apache-2.0
"""What became of a case, and the list of cases that are known not to hold."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import tomllib
from pathlib import Path
from typing import Any


@dataclasses.dataclass(frozen=True)
class Outcome:
    """`kind` is one of

    pass            the model is valid, loads and gives JAX's values, shapes and dtypes
    wrong value     it loads, but gives others
    not loadable    ONNX Runtime refuses it
    checker         it breaks the ONNX specification, or uses an op newer than its opset
    unlike the case its functions or the sizes of its outputs are not those that the case states
    error E012      jaxport refuses the function with this code
    crash           a process died, or something threw what is no error of ours
    timeout         the case took longer than the limit
    another refusal JAX refuses the function, and jaxport does not, or for another reason
    refused by jax  JAX itself cannot run the case, only a JAX that jax2onnx has patched
    not run by jax  JAX itself cannot run the case; it does not count
    """

    name: str
    group: str
    dtype: str
    kind: str
    detail: str = ""
    seconds: float = 0.0
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)  # what else the report tells

    @property
    def counts(self) -> bool:
        return self.kind != "not run by jax"

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class Known:
    """Cases that do not hold yet. All fields must fit: a name by pattern, the exact kind."""

    reason: str
    outcome: str
    group: str = "*"
    cases: str = "*"
    dtypes: tuple[str, ...] = ()
    until_opset: int = 1000  # newer opsets have what the case needs

    def covers(self, outcome: Outcome) -> bool:
        """Whether this entry speaks of the case, whatever became of it."""
        return (
            fnmatch.fnmatchcase(outcome.group, self.group)
            and fnmatch.fnmatchcase(outcome.name, self.cases)
            and (not self.dtypes or outcome.dtype in self.dtypes)
        )


def known_list(opset: int, path: Path) -> list[Known]:
    """The entries that speak of an opset."""
    rows = tomllib.loads(path.read_text())["known"]
    entries = [Known(**{**row, "dtypes": tuple(row.get("dtypes", ()))}) for row in rows]
    return [entry for entry in entries if opset <= entry.until_opset]


def explanation(outcome: Outcome, entries: list[Known]) -> Known | None:
    """The entry that expects just this outcome."""
    return next((e for e in entries if e.covers(outcome) and e.outcome == outcome.kind), None)
