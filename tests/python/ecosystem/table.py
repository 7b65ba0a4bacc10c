# SPDX-License-Identifier: Apache-2.0
"""The table of programs. A package is imported when one of its programs is made, not before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

Made = tuple[Callable[..., Any], Sequence[Any]]  # a function and the arrays to call it with


@dataclasses.dataclass(frozen=True)
class Program:
    """A program of a package.

    `make` gives the function to export and its arguments, pytrees of arrays. `module` is what must
    be there to import; `in_sample` programs run in the ordinary test suite where the package is.
    """

    package: str
    module: str
    name: str
    make: Callable[[], Made]
    in_sample: bool

    @property
    def id(self) -> str:
        return f"{self.package}: {self.name}"


PROGRAMS: list[Program] = []


def program(
    package: str, *, module: str = "", sample: bool = False
) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Enters a function into the table; its name is that of the program."""

    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        name = make.__name__.replace("_", " ").strip()
        PROGRAMS.append(
            Program(package, module or package.replace("-", "_"), name, make, in_sample=sample)
        )
        return make

    return enter
