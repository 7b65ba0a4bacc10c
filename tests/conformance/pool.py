# SPDX-License-Identifier: Apache-2.0
"""Runs cases in worker processes; a case that kills its worker or takes too long is an outcome."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection

from conformance.outcome import Outcome

START_LIMIT = 300.0  # seconds until a worker has imported JAX and the harness
CASES_BETWEEN_CLEANUPS = 100  # JAX keeps every compiled function until it is told not to


@dataclasses.dataclass(frozen=True)
class Task:
    """A case to run, described well enough to report it when its worker dies."""

    name: str
    group: str
    dtype: str
    seconds: float  # the limit of time

    def failed(self, kind: str, detail: str, seconds: float) -> Outcome:
        return Outcome(self.name, self.group, self.dtype, kind, detail, seconds)


# What a worker calls first, and what it then calls for each name of a case. It must be picklable.
Start = Callable[[], Callable[[str], Outcome]]


def _work(connection: Connection, start: Start) -> None:
    """A worker: gets names of cases, answers with outcomes, until the other side hangs up."""
    import jax

    run = start()
    connection.send("ready")
    for count in range(1, 1_000_000):
        try:
            name = connection.recv()
        except EOFError:
            return
        connection.send(run(name))
        if count % CASES_BETWEEN_CLEANUPS == 0:
            jax.clear_caches()


class _Worker:
    """One process; `run` gives an outcome for every task, whatever happens to the process."""

    def __init__(self, start: Start) -> None:
        self._start_work = start
        self._process: multiprocessing.process.BaseProcess | None = None
        self._connection: Connection | None = None

    def run(self, task: Task) -> Outcome:
        connection = self._connection or self._start()
        begin = time.monotonic()
        connection.send(task.name)
        try:
            if connection.poll(task.seconds):
                outcome = connection.recv()
                assert isinstance(outcome, Outcome)
                return outcome
            kind, detail = "timeout", f"more than {task.seconds:g} s"
        except (EOFError, ConnectionError):
            kind, detail = "crash", f"the process ended with {self._exit_code()}"
        self.stop()
        return task.failed(kind, detail, round(time.monotonic() - begin, 3))

    def stop(self) -> None:
        if self._process is None or self._connection is None:
            return
        self._connection.close()
        self._process.kill()
        self._process.join()
        self._process = self._connection = None

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, self._start_work), daemon=True)
        self._process.start()
        theirs.close()
        if not self._connection.poll(START_LIMIT):
            raise RuntimeError("a worker does not start")
        self._connection.recv()  # EOFError when it dies: nothing can run then
        return self._connection

    def _exit_code(self) -> int | None:
        assert self._process is not None
        self._process.join(10)
        return self._process.exitcode


def run_all(tasks: Sequence[Task], jobs: int, start: Start) -> Iterator[Outcome]:
    """Outcomes in the order in which they arise."""
    # One thread for each computation: the parallelism is that of the workers.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    done: queue.SimpleQueue[Outcome | Exception] = queue.SimpleQueue()

    def serve() -> None:
        worker = _Worker(start)
        try:
            while True:
                done.put(worker.run(waiting.get_nowait()))
        except queue.Empty:
            pass
        except Exception as error:  # ends the whole run, in the caller's thread
            done.put(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=serve, daemon=True) for _ in range(min(jobs, len(tasks)))]
    for thread in threads:
        thread.start()
    for _ in tasks:
        outcome = done.get()
        if isinstance(outcome, Exception):
            raise outcome
        yield outcome
