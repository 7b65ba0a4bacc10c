# SPDX-License-Identifier: Apache-2.0
"""Exports the programs of one kind and runs them in some places.

    python -m runtimes.run folder count place…

Writes folder/PLACE.json, the outcomes by program, for each place when it is done.
What a place said of a model is kept in the folder, and taken again while model, inputs, expected
results and runner are the same: a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import jaxport
from conformance.case import Program
from runtimes.corpus import RUNNER_DTYPES, Models, programs, results
from runtimes.places import RUNNERS, Place, places

Outcome = tuple[str, str]
# An outcome is "ok", "loads" (it could not be fed), "refused" (jaxport does not convert it for this
# target), "not loadable", "crash", "wrong value" or "slow", with a text.


class Task:
    """A model in a place, with what it should give."""

    def __init__(self, name: str, program: Program, expected: list, stem: str) -> None:
        self.name, self.program, self.expected, self.stem = name, program, expected, stem

    def judged(self, path: Path, place: Place) -> Outcome:
        try:
            have, want = results(path), self.expected
            if not place.takes_small_floats:
                pairs = zip(have, want, strict=True)
                have = [as_small_float(array, like.dtype) for array, like in pairs]
            if not place.has_f64:
                have, want = [as_single(array) for array in have], [as_single(a) for a in want]
            wrong = self.program.difference(want, have)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        return ("wrong value", wrong) if wrong else ("ok", "")


def as_small_float(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The border of a model has f32 in the place of small floats; see corpus.with_f32_border."""
    return array.astype(dtype) if str(dtype) in RUNNER_DTYPES else array


def as_single(array: np.ndarray) -> np.ndarray:
    narrow = {"float64": np.float32, "complex128": np.complex64}.get(str(array.dtype))
    with np.errstate(over="ignore"):
        return array if narrow is None else array.astype(narrow)


def export(
    folder: Path, count: int, wanted: list[Place]
) -> Iterator[tuple[Task, dict[tuple[str, int], str]]]:
    """Each program that JAX runs, and why it has no model for a target and opset."""
    for i, (name, make) in enumerate(programs(count)):
        try:
            program = make()
            expected = program.expected()
            models = Models(program, folder / str(i))
        except Exception as error:  # JAX does not run all of its own cases
            print(f"{name}: {type(error).__name__}: {error}"[:200], file=sys.stderr)
            continue
        refused = {}
        for target, opset in dict.fromkeys((place.target, place.opset) for place in wanted):
            try:
                models.write(target, opset)
            except jaxport.ConversionError as error:
                refused[target, opset] = f"{error.code} {error.message}"
        yield Task(name, program, [np.asarray(array) for array in expected], str(i)), refused


class Memory:
    """What a place said in earlier runs, by a hash of all that decides about it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known = dict(json.loads(line) for line in lines)

    def get(self, key: str) -> Outcome | None:
        return self._known.get(key)

    def put(self, key: str, outcome: Outcome) -> None:
        self._known[key] = outcome
        with self._path.open("a") as file:
            file.write(json.dumps([key, outcome]) + "\n")


def hash_of(folder: Path, files: Sequence[str], expected: list[np.ndarray]) -> str:
    state = hashlib.sha256()
    sources = [Path(__file__), *sorted(RUNNERS.iterdir())]
    for path in [*(folder / name for name in files[:2]), *sources]:
        if path.is_file():
            state.update(path.read_bytes())
    for array in expected:
        state.update(array.tobytes())
    return state.hexdigest()


def answers(place: Place, folder: Path, lines: list[str]) -> Iterator[Outcome]:
    """What the runner says about each task; one that ends the process is a crash of its own."""
    command, env = place.start(folder)
    done = 0
    while done < len(lines):
        with tempfile.TemporaryFile("w+") as tasks:
            tasks.write("\n".join(lines[done:]))
            tasks.seek(0)
            run = subprocess.Popen(
                command, stdin=tasks, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
                text=True,
            )  # fmt: skip
        assert run.stdout
        while done < len(lines):
            clock = threading.Timer(place.seconds, run.kill)
            clock.start()
            line = run.stdout.readline()
            is_slow = not clock.is_alive()
            clock.cancel()
            done += 1
            if not line:
                ended = f"the process ended with code {run.wait()}"
                yield (
                    ("slow", f"no answer in {place.seconds:.0f} s") if is_slow else ("crash", ended)
                )
                break
            yield tuple(json.loads(line))
        run.kill()
        run.wait()


def outcomes_in(place: Place, folder: Path, tasks: list[Task]) -> Iterator[tuple[Task, Outcome]]:
    memory = Memory(folder / f"{place.key}.jsonl")
    variant = "" if place.takes_small_floats else ".f32"
    waiting = []
    for task in tasks:
        files = [f"{task.stem}.{place.target}.{place.opset}{variant}.onnx"]
        files += [f"{task.stem}{variant}.npz", f"{task.stem}.out.npz"]
        key = hash_of(folder, files, task.expected)
        known = memory.get(key)
        if known:
            yield task, known
        else:
            waiting.append((task, key, " ".join(files)))
    said = answers(place, folder, [line for *_, line in waiting])
    for (task, key, _), outcome in zip(waiting, said, strict=True):
        if outcome[0] == "ok":
            outcome = task.judged(folder / f"{task.stem}.out.npz", place)
        memory.put(key, outcome)
        yield task, outcome


def main() -> None:
    root, count, *keys = sys.argv[1:]
    folder = Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [places()[key] for key in keys]
    exported = list(export(folder, int(count), wanted))
    print(f"{len(exported)} programs", file=sys.stderr, flush=True)
    for place in wanted:
        form = (place.target, place.opset)
        answer: dict[str, Outcome] = {}
        tasks = []
        for task, refused in exported:
            if form in refused:
                answer[task.name] = ("refused", refused[form])
            else:
                tasks.append(task)
        answer |= {task.name: outcome for task, outcome in outcomes_in(place, folder, tasks)}
        (folder / f"{place.key}.json").write_text(json.dumps(answer))
        print(f"{place.title}: {len(tasks)} models", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
