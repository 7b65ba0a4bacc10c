# SPDX-License-Identifier: Apache-2.0
"""Exports the programs of one kind, runs them on all versions, and prints the outcomes as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from runtime_versions import environment

import jaxport
from conformance.case import Program
from jaxport import _core
from runtimes.corpus import programs, results, write_models

RUNNER = Path(__file__).with_name("runner.py")
NEWEST_OPSET = 23  # the default of to_onnx

Outcome = tuple[str, str]


def opset_for(version: str) -> int:
    return min(NEWEST_OPSET, _core.newest_opset(f"onnxruntime=={version}"))


def export(folder: Path, count: int, versions: list[str], target: str) -> dict[str, Program]:
    """The programs by name. Model i is "i.23.onnx"; a program that is refused has none."""
    opsets = sorted({opset_for(version) for version in versions}, reverse=True)
    found = {}
    for i, (name, make) in enumerate(programs(count)):
        try:
            program = make()
            expected = program.expected()
            write_models(program, opsets, target, folder / str(i))
        except jaxport.ConversionError as error:
            print(f"{name}: {error.code} {error.message}", file=sys.stderr)
        except Exception as error:  # JAX does not run all of its own cases
            print(f"{name}: {type(error).__name__}", file=sys.stderr)
        else:
            found[name] = (i, program, expected)
    return found


def outcomes_of(folder: Path, tasks: list[str], version: str) -> list[Outcome]:
    """What the runner says about each task; one that ends the process is a crash of its own."""
    done: list[Outcome] = []
    while len(done) < len(tasks):
        run = subprocess.run(
            [sys.executable, RUNNER, folder], input="\n".join(tasks[len(done) :]), text=True,
            env=environment(version), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        done += [tuple(json.loads(line)) for line in run.stdout.splitlines()]
        if len(done) < len(tasks):
            done.append(("crash", f"the process ended with code {run.returncode}"))
    return done


def judged(program: Program, expected: list, path: Path) -> Outcome:
    try:
        wrong = program.difference(expected, results(path))
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    return ("wrong value", wrong) if wrong else ("ok", "")


def main() -> None:
    folder, count, target, *versions = sys.argv[1:]
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    found = export(root, int(count), versions, target)
    answer: dict[str, dict[str, Outcome]] = {name: {} for name in found}
    for version in versions:
        opset = opset_for(version)
        tasks = [f"{i}.{opset}.onnx {i}.npz {i}.out.npz" for i, _, _ in found.values()]
        outcomes = outcomes_of(root, tasks, version)
        for (name, (i, program, expected)), outcome in zip(found.items(), outcomes, strict=True):
            if outcome[0] == "ok":
                outcome = judged(program, expected, root / f"{i}.out.npz")
            answer[name][version] = outcome
        print(f"{version}: {len(tasks)} models", file=sys.stderr, flush=True)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
