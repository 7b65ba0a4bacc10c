# SPDX-License-Identifier: Apache-2.0
"""All programs, in the order of the page: by package."""

from __future__ import annotations

from ecosystem import networks, probability, solvers, worlds
from ecosystem.table import PROGRAMS, Program

# The modules enter their programs when they are imported.
MODULES = (networks, probability, solvers, worlds)
ALL: tuple[Program, ...] = tuple(sorted(PROGRAMS, key=lambda program: program.package.lower()))
