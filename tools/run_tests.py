# SPDX-License-Identifier: Apache-2.0
"""Runs every part of `make test`, then prints how long each took and how many tests passed.

The time that a part computed, on all cores together, says what it costs on a busy machine, too.

A part is a make target, so each can be run by itself. A part that fails does not stop those that
do not need it. Counts come from the JUnit files in build/report; a part without one counts as one
test.
"""

import resource
import subprocess
import sys
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
    needs: tuple[str, ...] = ("setup",)


PARTS = [
    Part("setup", "system packages, virtual environment", needs=()),
    Part("check-format", "formats"),
    Part("check-python", "ruff"),
    Part("check-types", "mypy"),
    Part("check-repository", "repository rules"),
    Part("docs", "documentation site"),
    Part("build", "build of the package and the tools"),
    Part("wheel", "wheel for other machines", needs=("build",)),
    Part("test-unit", "unit tests", "unit-release/*.xml", ("build",)),
    Part("test-golden", "text tests", "golden-release.xml", ("build",)),
    Part("test-fuzz", "search for counterexamples to rules", needs=("build",)),
    Part("test-python", "parity, newest JAX", "python.xml", ("build",)),
    Part("test-web", "ONNX Runtime Web", "web.xml", ("build",)),
    Part("test-conformance", "sample of JAX's own cases", "conformance.xml", ("build",)),
    Part("test-transforms", "sample of transformed functions", "transforms.xml", ("build",)),
    Part("test-jax2onnx", "sample of jax2onnx's own cases", "jax2onnx*.xml", ("build",)),
    Part("test-fuzz-programs", "random JAX programs", "fuzz-programs.xml", ("build",)),
    Part("test-instructions", "instructions of the compiler", needs=("build",)),
    Part(".venv-oldest/.jaxport", "environment of the oldest JAX", needs=("build",)),
    Part(
        "test-oldest-smoke",
        "smoke test, oldest JAX",
        "oldest-smoke.xml",
        (".venv-oldest/.jaxport",),
    ),
    Part("build-asan", "build with sanitizers"),
    Part("test-unit-asan", "unit tests, sanitizers", "unit-asan/*.xml", ("build-asan",)),
    Part("test-golden-asan", "text tests, sanitizers", "golden-asan.xml", ("build-asan",)),
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


def computing_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(part: Part) -> Outcome:
    print(f"\n=== {part.title} (make {part.target})", flush=True)
    for stale in REPORT.glob(part.report) if part.report else ():
        stale.unlink()
    start, computed = time.monotonic(), computing_time()
    ok = subprocess.run(["make", part.target], cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0
    outcome = Outcome(ok, time.monotonic() - start, computing_time() - computed)
    if part.report:
        outcome.passed, outcome.failed, outcome.skipped = counts(part.report)
        if ok and outcome.passed == 0:
            outcome.ok, outcome.note = False, "no test ran"
    else:
        outcome.passed = int(ok)
    if not outcome.ok and outcome.failed == 0:
        outcome.failed = 1
    return outcome


def run_all() -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for part in PARTS:
        missing = [need for need in part.needs if not outcomes[need].ok]
        if missing:
            outcomes[part.target] = Outcome(False, failed=1, note=f"not run: {missing[0]} failed")
        else:
            outcomes[part.target] = run(part)
    return outcomes


def table(outcomes: dict[str, Outcome]) -> str:
    lines = [
        f"\n{'part':40} {'seconds':>8} {'computed':>9} {'passed':>7} {'failed':>7} {'skipped':>8}"
    ]
    for part in PARTS:
        o = outcomes[part.target]
        row = f"{part.title:40} {o.seconds:8.1f} {o.of_processors:9.1f}"
        row += f" {o.passed:7} {o.failed:7} {o.skipped:8}  {o.note}"
        lines.append(row.rstrip())
    total = sum(o.seconds for o in outcomes.values())
    computed = sum(o.of_processors for o in outcomes.values())
    lines.append(f"{'total':40} {total:8.1f} {computed:9.1f}")
    return "\n".join(lines)


def main() -> int:
    outcomes = run_all()
    print(table(outcomes))
    passed, failed, skipped = (
        sum(getattr(o, kind) for o in outcomes.values()) for kind in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
