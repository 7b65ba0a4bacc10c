# SPDX-License-Identifier: Apache-2.0
"""Damaged files through every command, each in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from fuzz.files.mutate import mutated_bytes, mutated_model, mutated_text

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 10  # of a processor, for one command
BYTES = 4 << 30  # of memory

CONVERT = ("convert", "{file}", "-o", "{out}")
PROGRAM_COMMANDS = (
    CONVERT,
    (*CONVERT, "--opset", "17", "--remarks"),
    (*CONVERT, "--target", "onnx", "--opset", "26"),
    (*CONVERT, "--no-raise", "--functions", "auto"),
    (*CONVERT, "--inline-limit", "0", "--external-threshold", "1"),
    (*CONVERT, "--exact"),
    (*CONVERT, "--precision", "f16"),
    (*CONVERT, "--target", "openvino", "--opset", "auto"),
    (*CONVERT, "--target", "onnxruntime-web", "--precision", "f16", "--precision-io"),
    (*CONVERT, "--on-unsupported", "custom_op", "--normalization-mode", "prefer_native"),
    ("replay", "{file}"),
    ("replay", "{file}", "-o", "{out}", "--remarks"),
    ("reduce", "{file}", "--while", "grep -q return {{}}", "-o", "{small}", "--max-tries", "10"),
    ("report", "{file}", "-o", "{page}"),
    ("report", "{file}", "-o", "{page}", "--functions", "auto", "--exact"),
)
MODEL_COMMANDS = (
    ("stats", "{file}"),
    ("check", "{file}"),
    ("check", "{file}", "--target", "openvino"),
    ("check", "{file}", "--target", "onnxruntime>=1.20"),
    ("text", "{file}"),
    ("diff", "{file}", "{other}"),
    ("diff", "{other}", "{file}"),
    ("expect", "{file}"),
    ("expect", "{file}", "--spec", "{spec}"),
    ("expect", "{other}", "--spec", "{file}"),
    ("opt", "{file}", "-o", "{out}", "--counts"),
    ("targets", "{file}"),
    ("targets", "{file}", "--json"),
    ("ops", "{file}", "{other}"),
    ("ops", "{file}", "--types", "-o", "{small}"),
    ("report", "{file}", "-o", "{page}"),
    CONVERT,
)
# How a case starts; the options are what damage may change.
CASE = "// jaxport 0.1.0\n// options: --opset=21 --exact --target=onnxruntime>=1.28\n"


def core() -> ModuleType:
    """The extension module alone: without JAX a fork takes a millisecond."""
    folder = Path(importlib.util.find_spec("jaxport").origin).parent  # type: ignore[union-attr, arg-type]
    spec = importlib.util.spec_from_file_location(
        "jaxport._core", next(folder.glob("_core*.so")), submodule_search_locations=[]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Outcome:
    code: int  # that of a signal is negative
    message: str

    def problem(self) -> str:
        """Why this is a fault of the program; "" when it is none."""
        if self.code == -signal.SIGXCPU:
            return f"more than {SECONDS} s"
        if self.code < 0:
            return f"signal {signal.Signals(-self.code).name}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        if self.code == 2 and not self.message.startswith("error[JXP-E"):
            return "no error of the user's"
        return ""


def run(module: ModuleType, arguments: list[str], scratch: Path) -> Outcome:
    errors = scratch / "stderr"
    child = os.fork()
    if child == 0:
        code = 3
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
            code = module.run_command(arguments, {})
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return Outcome(os.waitstatus_to_exitcode(status), errors.read_text(errors="replace"))


# --- what is damaged


@dataclass
class Corpus:
    programs: list[str]
    models: list[bytes]
    specification: bytes


def corpus(module: ModuleType, scratch: Path) -> Corpus:
    """The programs of the text tests, and the models they become."""
    programs = []
    for path in sorted((ROOT / "tests" / "golden").rglob("*.jir")):
        text = re.sub(r"^\s*//.*\n", "", path.read_text(), flags=re.MULTILINE)
        programs += [f"func @{part}" for part in text.split("func @")[1:]]
    models = []
    out, file = scratch / "seed.onnx", scratch / "seed.jir"
    for text in programs[::5]:
        file.write_text(text)
        if run(module, ["convert", str(file), "-o", str(out)], scratch).code == 0:
            models.append(out.read_bytes())
    specification = b'[["Exp", {"counts": {"Exp": 1}}]]'
    return Corpus(programs, [m for m in models if len(m) < 20_000], specification)


def mutants(seeds: Corpus, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Endlessly: a suffix and the content of a file."""
    while True:
        kind = rng.randrange(5)
        if kind < 3:
            header = CASE if rng.random() < 0.1 else ""
            program = mutated_text(header + rng.choice(seeds.programs), seeds.programs, rng)
            yield ".jir", program.encode()
        elif kind == 3:
            yield ".onnx", mutated_model(rng.choice(seeds.models), seeds.models, rng)
        else:
            yield ".onnx", mutated_bytes(rng.choice(seeds.models), seeds.models, rng)


# --- the search


@dataclass
class Tally:
    codes: Counter[str] = field(default_factory=Counter)  # of messages: "E032", "" for none
    files: int = 0
    finds: list[str] = field(default_factory=list)

    def text(self, seconds: float) -> str:
        codes = ", ".join(f"{code or 'none'} {n:,}" for code, n in self.codes.most_common())
        commands = sum(self.codes.values())
        return (
            f"{self.files:,} damaged files, {commands:,} commands in {seconds:.0f} s, "
            f"{len(self.finds)} finds; errors: {codes}"
        )


def search(seed: int, count: int, seconds: float, folder: Path) -> Tally:
    module, rng, tally = core(), random.Random(seed), Tally()
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        seeds = corpus(module, scratch)
        names = {"other": "other.onnx", "spec": "spec.json", "out": "out.onnx"}
        names |= {"page": "page.json", "small": "small.jir"}
        places = {key: scratch / name for key, name in names.items()}
        places["other"].write_bytes(seeds.models[0])
        places["spec"].write_bytes(seeds.specification)
        end = time.monotonic() + seconds
        for suffix, content in mutants(seeds, rng):
            if tally.files == count or time.monotonic() > end:
                break
            tally.files += 1
            file = scratch / f"mutant{suffix}"
            file.write_bytes(content)
            commands = PROGRAM_COMMANDS if suffix == ".jir" else MODEL_COMMANDS
            for command in rng.sample(commands, 2):
                values = {**places, "file": file}
                arguments = [word.format(**values) for word in command]
                outcome = run(module, arguments, scratch)
                code = re.match(r"error\[JXP-(\w+)\]", outcome.message)
                tally.codes[code[1] if code else ""] += 1
                if problem := outcome.problem():
                    kept = folder / f"find_{len(tally.finds) + 1}{suffix}"
                    folder.mkdir(parents=True, exist_ok=True)
                    kept.write_bytes(content)
                    shown = " ".join(word.format(**{**names, "file": kept}) for word in command)
                    tally.finds.append(f"{problem}: jaxport {shown}\n{outcome.message[:1000]}")
                    print(tally.finds[-1], file=sys.stderr, flush=True)
    return tally
