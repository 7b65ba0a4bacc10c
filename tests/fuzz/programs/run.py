# SPDX-License-Identifier: Apache-2.0
"""Runs many programs, shrinks what goes wrong, counts what became of them."""

from __future__ import annotations

import collections
import queue
import re
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz.programs.program import Program, function_source
from fuzz.programs.report import find_source
from fuzz.programs.shrink import Case, at_turn, shrunk, skeleton
from fuzz.programs.worker import Task, Worker

SHRINK_SECONDS = 60.0
SHRINK_MOST = 200
SHRINK_MOST_CRASHES = 40  # each takes a new process
ALIKE = 3  # as many finds with the same message are shrunk


class Tally:
    """What became of the programs."""

    def __init__(self, folder: Path) -> None:
        self.kinds: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self.known: collections.Counter[str] = collections.Counter()
        self.seconds: collections.Counter[str] = collections.Counter()
        self.files: list[str] = []
        self.signatures: collections.Counter[str] = collections.Counter()
        self.folder = folder
        self._lock = threading.Lock()

    def add(self, outcome: Any) -> None:
        with self._lock:
            self.kinds[outcome.kind] += 1
            if outcome.kind == "refused":
                self.refused[outcome.detail[:70]] += 1
            if outcome.kind == "known":
                self.known[outcome.detail] += 1
            for name, seconds in outcome.seconds:
                self.seconds[name] += seconds

    def is_enough(self, signature: str) -> bool:
        """Whether as many finds like this one were looked at."""
        with self._lock:
            self.signatures[signature] += 1
            return self.signatures[signature] > ALIKE

    def write(self, seed: int, case: Case, outcome: Any) -> None:
        words = sorted(set(re.findall(r"[a-z_]\w{3,}", function_source(case.program))))
        key = (
            f"{outcome.kind}: {skeleton(outcome.detail) if outcome.kind != 'wrong' else ''} {words}"
        )
        with self._lock:
            self.signatures[key] += 1
            if self.signatures[key] > 1:
                return
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{outcome.kind}_{seed}.py"
            path.write_text(find_source(seed, case, outcome))
            self.files.append(str(path))
            print(f"{path.name}: {outcome.kind} {outcome.detail[:150]}", flush=True)

    def text(self, seconds: float) -> str:
        count = sum(self.kinds.values())
        lines = [f"{count} programs in {seconds:.0f} s, {len(self.files)} different finds"]
        lines += [f"  {kind:12} {n}" for kind, n in self.kinds.most_common()]
        for title, rows in (("refused", self.refused), ("known", self.known)):
            lines += [f"  {title}: {n} {row}" for row, n in rows.most_common(12)]
        spent = ", ".join(f"{k} {v / max(count, 1) * 1000:.0f}" for k, v in self.seconds.items())
        lines.append(f"  milliseconds of a processor for each program: {spent}")
        return "\n".join(lines)

    def write_junit(self, path: Path) -> None:
        """One test case for each find, and one for all programs that are well."""
        count = sum(self.kinds.values())
        suite = ElementTree.Element("testsuite", name="random programs", tests=str(count))
        ElementTree.SubElement(suite, "testcase", classname="fuzz", name=f"{count} programs")
        for file in self.files:
            case = ElementTree.SubElement(suite, "testcase", classname="fuzz", name=file)
            ElementTree.SubElement(case, "failure", message=Path(file).read_text()[:2000])
        path.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path, encoding="unicode", xml_declaration=True)


def run(first: int, programs: int, seconds: float, jobs: int, limit: float, folder: Path) -> Tally:
    """Programs of consecutive seeds until there are enough or time is over."""
    tally, end = Tally(folder), time.monotonic() + seconds
    seeds = Seeds(first, programs, end)
    errors: queue.SimpleQueue[Exception] = queue.SimpleQueue()

    def serve() -> None:
        worker = Worker(limit)
        try:
            for seed in seeds:
                _one(worker, seed, tally)
        except Exception as error:  # ends the whole run, in the caller's thread
            errors.put(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not errors.empty():
        raise errors.get()
    return tally


class Seeds(Iterator[int]):
    """Seeds that threads share."""

    def __init__(self, first: int, programs: int, end: float) -> None:
        self._next, self._stop, self._end = first, first + programs, end
        self._first = first
        self._lock = threading.Lock()

    def __next__(self) -> int:
        with self._lock:
            if self._next >= self._stop or time.monotonic() > self._end:
                raise StopIteration
            self._next += 1
            if (self._next - self._first) % 500 == 0:
                print(f"{self._next - self._first} programs", flush=True)
            return self._next - 1


def _one(worker: Worker, seed: int, tally: Tally) -> None:
    program, outcome = worker.run(Task(seed))
    if outcome.kind == "timeout":  # a machine that does other things, too
        program, outcome = worker.run(Task(seed))
    tally.add(outcome)
    if not outcome.is_find:
        return
    if outcome.kind != "wrong" and tally.is_enough(f"{outcome.kind} {skeleton(outcome.detail)}"):
        return
    case, small = _smallest(worker, program, outcome)
    tally.write(seed, case, small)


def _smallest(worker: Worker, program: Program, outcome: Any) -> tuple[Case, Any]:
    """The find, smaller; the turn of a crash is not known, so each is tried."""

    def ask(case: Case) -> Any:
        return worker.run(Task(program=case.program, given=(list(case.values),)))[1]

    is_crash = outcome.kind in ("crash", "timeout")
    turns = range(len(program.values)) if is_crash else [outcome.turn]
    for turn in turns:
        case = at_turn(program, turn)
        first = ask(case)
        if first.kind == outcome.kind:
            most = SHRINK_MOST_CRASHES if is_crash else SHRINK_MOST
            return shrunk(case, first, ask, SHRINK_SECONDS, most)
    return at_turn(program, outcome.turn), outcome
