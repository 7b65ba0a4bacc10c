# SPDX-License-Identifier: Apache-2.0
"""Instructions that the compiler spends on a program, which is what CI guards: times are noisy. And
the nodes of the models, which are the same for the newest ONNX Runtime and for all versions.

    make test-instructions    compares with bench/results/instructions.json
    make count-update         writes that file

Callgrind counts those of `jaxport convert`: the same on every run of one binary. `make bench-core`
says how the time of the same programs is spread over the stages.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from measure import RESULTS, ROOT, SCRATCH
from programs import written

TOOL = ROOT / "build" / "release" / "jaxport"
BASELINE = RESULTS / "instructions.json"
LIMIT = 1.03
# What older versions lack costs nothing on the newest, and nothing these networks would notice.
TARGETS = ("onnxruntime>=1.31", "onnxruntime")


def compiler() -> str:
    """Another compiler makes other instructions of the same source."""
    run = subprocess.run(["c++", "--version"], check=True, capture_output=True, text=True)
    return run.stdout.splitlines()[0]


def instructions(path: Path) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    run = subprocess.run(
        [*command, TOOL, "convert", path, "-o", path.with_suffix(".onnx")],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found, run.stderr
    return int(found[1])


def nodes(path: Path, target: str) -> int:
    run = subprocess.run(
        [TOOL, "convert", path, "-o", path.with_suffix(".onnx"), "--target", target],
        check=True,
        capture_output=True,
        text=True,
    )
    found = re.search(r"([\d,]+) nodes", run.stdout)
    assert found, run.stdout
    return int(found[1].replace(",", ""))


def changed(paths: dict[str, Path], before: dict[str, int]) -> list[str]:
    """The programs whose models have other nodes than before, for any of TARGETS."""
    differing = []
    for name, path in paths.items():
        counts = {target: nodes(path, target) for target in TARGETS}
        if set(counts.values()) != {before[name]}:
            differing.append(f"{name} had {before[name]} nodes and has {counts}")
    return differing


def exceeded(counts: dict[str, int], before: dict[str, int]) -> list[str]:
    """The programs that cost more than the limit allows; prints all of them."""
    over = []
    for name, count in counts.items():
        ratio = count / before[name]
        print(f"{name:36} {count / 1e6:8.1f} million, {ratio:.3f} of what it was")
        if ratio > LIMIT:
            over.append(name)
    return over


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true", help="make this the baseline")
    paths = written(SCRATCH)
    counts = {name: instructions(path) for name, path in paths.items()}
    if parser.parse_args().update:
        now = {name: nodes(path, TARGETS[0]) for name, path in paths.items()}
        result = {"compiler": compiler(), "instructions": counts, "nodes": now}
        BASELINE.write_text(json.dumps(result, indent=2) + "\n")
        return 0
    baseline = json.loads(BASELINE.read_text())
    differing = changed(paths, baseline["nodes"])
    print(*differing, sep="\n")
    if baseline["compiler"] != compiler():
        print(f"not compared: the baseline is of {baseline['compiler']}")
        return 1 if differing else 0
    over = exceeded(counts, baseline["instructions"])
    if over:
        print(f"more than {LIMIT} of the baseline: {', '.join(over)}")
        print("if models are worth it, run `make count-update` and say so in the commit")
    return 1 if over or differing else 0


if __name__ == "__main__":
    sys.exit(main())
