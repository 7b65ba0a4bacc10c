# SPDX-License-Identifier: Apache-2.0
"""Processes that judge programs; a program that kills its process is an outcome like any other."""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import signal
from multiprocessing.connection import Connection
from typing import Any, cast

import quick_xla
from fuzz.programs.program import Program

START_LIMIT = 300.0  # seconds until a process has imported JAX
PROGRAMS_BETWEEN_CLEANUPS = 100  # JAX keeps every compiled function until it is told not to
PROGRAMS_OF_ONE_PROCESS = 2000
PATIENCE = 10  # a process that waits has as many times its limit: other programs run, too
JAX_RAN = "JAX has run the program"  # the first answer: what goes wrong later is not JAX's fault


@dataclasses.dataclass(frozen=True)
class Task:
    """A seed, or a program with the arrays to run it on."""

    seed: int = 0
    program: Program | None = None
    given: tuple[Any, ...] = ()
    fault: str = ""  # "crash", "hang" and "spin" test this file


def _work(connection: Connection, limit: float) -> None:
    """Answers tasks with (program, outcome) until the other side hangs up.

    SIGPROF ends the process when one of them takes more than `limit` seconds of a processor.
    """
    import warnings

    import jax

    from fuzz.programs.generate import generate
    from fuzz.programs.judge import judge

    warnings.simplefilter("ignore")  # NaN and overflow are what the programs are about

    connection.send("ready")
    for count in range(1, 1_000_000):
        try:
            task = connection.recv()
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, limit)
        if task.fault:
            connection.send(JAX_RAN)
            _fail(task.fault)
        program = task.program or generate(task.seed)
        jax_ran = functools.partial(connection.send, JAX_RAN)
        connection.send((program, judge(program, task.given, jax_ran=jax_ran)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        if count % PROGRAMS_BETWEEN_CLEANUPS == 0:
            jax.clear_caches()


def _fail(fault: str) -> None:
    import time

    if fault == "crash":
        os.abort()
    while fault == "spin":
        pass
    time.sleep(1000)


class Worker:
    """One process, replaced when it dies, hangs or has become old."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._process: Any = None
        self._connection: Connection | None = None
        self._count = 0

    def run(self, task: Task) -> tuple[Program, Any]:
        """The program of a task and its outcome, whatever happens to the process."""
        from fuzz.programs.judge import Outcome

        if self._count == PROGRAMS_OF_ONE_PROCESS:
            self.stop()
        connection = self._connection or self._start()
        self._count += 1
        has_run = False
        try:
            connection.send(task)
            while connection.poll(self._limit * PATIENCE):
                answer = connection.recv()
                if answer != JAX_RAN:
                    return cast("tuple[Program, Any]", answer)
                has_run = True
            kind, detail = "timeout", f"more than {self._limit * PATIENCE:g} s without an answer"
        except (EOFError, ConnectionError):
            self._process.join(10)
            if self._process.exitcode == -signal.SIGPROF:
                kind, detail = "timeout", f"more than {self._limit:g} s"
            else:
                kind, detail = "crash", f"the process ended with {self._process.exitcode}"
        self.stop()
        return self._program(task), Outcome(kind if has_run else "not run", detail)

    def _program(self, task: Task) -> Program:
        if task.program:
            return task.program
        from fuzz.programs.generate import generate

        return generate(task.seed)

    def stop(self) -> None:
        if self._connection is None:
            return
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._process = self._connection = None
        self._count = 0

    def _start(self) -> Connection:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA complains of strange programs
        os.environ["XLA_FLAGS"] = quick_xla.FLAGS
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        arguments = (theirs, self._limit)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        if not self._connection.poll(START_LIMIT):
            raise RuntimeError("a worker does not start")
        self._connection.recv()  # EOFError when it dies: nothing can run then
        return self._connection
