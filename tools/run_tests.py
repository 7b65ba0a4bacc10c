# SPDX-License-Identifier: Apache-2.0
"""Runs every part of `make test`, then prints how long each took and how many tests passed.

A part is a make target, so each can be run by itself. Two parts run at once: many use one processor
only. A part that fails does not stop those that do not need it; its output is printed when it ends,
that of the others stays in build/report. Counts come from the JUnit files there; a part without one
counts as one test.

The time that a part computed, on all processors, says what it costs on a busy machine, too.
"""

import os
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "build" / "report"


@dataclass(frozen=True)
class Part:
    target: str
    title: str
    report: str = ""  # JUnit files below build/report, as a glob
    needs: tuple[str, ...] = ("environment",)


BUILT = ("environment", "build")

# In the order in which they start, as far as what they need is there: what takes long comes first.
PARTS = [
    Part("setup", "system packages, virtual environment", needs=()),
    Part("environment", "packages of the tests", needs=("setup",)),
    Part("build", "build of the package and the tools", needs=("setup",)),
    Part("build-asan", "build with sanitizers", needs=("setup",)),
    Part("test-python", "parity, newest JAX", "python.xml", BUILT),
    Part("test-conformance", "sample of JAX's own cases", "conformance.xml", BUILT),
    Part("test-transforms", "sample of transformed functions", "transforms.xml", BUILT),
    Part("test-jax2onnx", "sample of jax2onnx's own cases", "jax2onnx*.xml", BUILT),
    Part("test-fuzz-programs", "random JAX programs", "fuzz-programs.xml", BUILT),
    Part("test-fuzz", "search for counterexamples to rules", needs=BUILT),
    Part(".venv-oldest/.jaxport", "environment of the oldest JAX", needs=BUILT),
    Part(
        "test-oldest-smoke",
        "smoke test, oldest JAX",
        "oldest-smoke.xml",
        (".venv-oldest/.jaxport",),
    ),
    Part("test-instructions", "instructions of the compiler", needs=BUILT),
    Part("test-web", "ONNX Runtime Web, pages in Chromium", "web.xml", (*BUILT, "docs")),
    Part("test-page", "report page in Chromium", "page.xml", BUILT),
    Part("runtimes-sample", "models on an older ONNX Runtime", needs=BUILT),
    Part("test-unit", "unit tests, sanitizers", "unit/*.xml", ("environment", "build-asan")),
    Part("test-golden", "text tests", "golden-release.xml", BUILT),
    Part(
        "test-golden-asan",
        "text tests, sanitizers",
        "golden-asan.xml",
        ("environment", "build-asan"),
    ),
    Part("check-types", "mypy"),
    Part("check-web", "types of the report page, lint of code for browsers"),
    Part("docs", "documentation site"),
    Part("check-format", "formats"),
    Part("check-python", "ruff"),
    Part("check-repository", "repository rules"),
    Part("check-licences", "licences", needs=BUILT),
    Part("test-package", "sdist, wheel in an empty environment", needs=BUILT),
]


@dataclass
class Outcome:
    ok: bool
    seconds: float = 0.0
    of_processors: float = 0.0  # seconds that all processes together computed
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    note: str = field(default="")


def counts(pattern: str) -> tuple[int, int, int]:
    """Passed, failed and skipped test cases of the JUnit files that match."""
    passed = failed = skipped = 0
    for path in sorted(REPORT.glob(pattern)):
        for case in ElementTree.parse(path).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    return passed, failed, skipped


def run(part: Part) -> Outcome:
    """Runs make and collects its output, which two parts at once must not mix."""
    for stale in REPORT.glob(part.report) if part.report else ():
        stale.unlink()
    log = REPORT / f"{part.target.strip('.').replace('/', '')}.log"
    start = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["make", part.target], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    outcome = Outcome(process.returncode == 0, time.monotonic() - start)
    outcome.of_processors = used.ru_utime + used.ru_stime
    if part.report:
        outcome.passed, outcome.failed, outcome.skipped = counts(part.report)
        if outcome.ok and outcome.passed == 0:
            outcome.ok, outcome.note = False, "no test ran"
    else:
        outcome.passed = int(outcome.ok)
    if not outcome.ok and outcome.failed == 0:
        outcome.failed = 1
    if not outcome.ok:
        print(
            f"\n=== {part.title} (make {part.target})\n{log.read_text(errors='replace')}",
            flush=True,
        )
    return outcome


class Schedule:
    """Hands out the first part whose needs are met; what needs a part that failed is not run."""

    def __init__(self, parts: list[Part]) -> None:
        self.waiting = list(parts)
        self.outcomes: dict[str, Outcome] = {}
        self.changed = threading.Condition()

    def drop_hopeless(self) -> None:
        for part in list(self.waiting):
            broken = [n for n in part.needs if n in self.outcomes and not self.outcomes[n].ok]
            if broken:
                note = f"not run: {broken[0]} failed"
                self.outcomes[part.target] = Outcome(False, failed=1, note=note)
                self.waiting.remove(part)

    def take(self) -> Part | None:
        """Waits for a part that can start; None when all have started."""
        with self.changed:
            while self.waiting:
                self.drop_hopeless()
                for part in self.waiting:
                    if all(need in self.outcomes for need in part.needs):
                        self.waiting.remove(part)
                        return part
                if self.waiting:
                    self.changed.wait()
            return None

    def finish(self, part: Part, outcome: Outcome) -> None:
        with self.changed:
            self.outcomes[part.target] = outcome
            self.changed.notify_all()


def work(schedule: Schedule) -> None:
    while part := schedule.take():
        print(f"      {part.title} …", flush=True)
        outcome = run(part)
        word = "ok" if outcome.ok else "FAILED"
        print(f"{word:6}{part.title}, {outcome.seconds:.0f} s", flush=True)
        schedule.finish(part, outcome)


def run_all() -> dict[str, Outcome]:
    REPORT.mkdir(parents=True, exist_ok=True)
    schedule = Schedule(PARTS)
    workers = [threading.Thread(target=work, args=(schedule,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return schedule.outcomes


def table(outcomes: dict[str, Outcome], seconds: float) -> str:
    lines = [
        f"\n{'part':40} {'seconds':>8} {'computed':>9} {'passed':>7} {'failed':>7} {'skipped':>8}"
    ]
    for part in PARTS:
        o = outcomes[part.target]
        row = f"{part.title:40} {o.seconds:8.1f} {o.of_processors:9.1f}"
        row += f" {o.passed:7} {o.failed:7} {o.skipped:8}  {o.note}"
        lines.append(row.rstrip())
    computed = sum(o.of_processors for o in outcomes.values())
    lines.append(f"{'all, two parts at once':40} {seconds:8.1f} {computed:9.1f}")
    return "\n".join(lines)


def main() -> int:
    start = time.monotonic()
    outcomes = run_all()
    print(table(outcomes, time.monotonic() - start))
    passed, failed, skipped = (
        sum(getattr(o, kind) for o in outcomes.values()) for kind in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
