# SPDX-License-Identifier: Apache-2.0
"""Conversions at the same time, in threads and processes; what stays in memory after many."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

import jaxport
from jaxport import _core
from jaxport.session import watched

CONVERSIONS = int(os.environ.get("JAXPORT_CONVERSIONS", "200"))  # make test-leaks has 1,000
W = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


def network(depth: int):
    def apply(x):
        for _ in range(depth):
            x = x + jax.nn.softmax(jax.nn.gelu(x @ W), axis=-1)
        return jnp.cumsum(x, axis=0)

    return apply


def converted(depth: int) -> bytes:
    return jaxport.to_onnx(network(depth), [("B", 8)]).SerializeToString()


def test_threads_give_the_bytes_of_one_alone():
    depths = [1, 3, 5, 7] * 2
    alone = [converted(depth) for depth in depths]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(converted, depths)) == alone


def test_processes_give_the_bytes_of_one_alone():
    alone = [converted(1), converted(3)]
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(converted, [1, 3])) == alone


def test_other_threads_run_while_the_compiler_works():
    module = jaxport.to_onnx(network(150), [("B", 8)], return_mode="model")._module
    stop, moments = threading.Event(), []

    def count() -> None:
        while not stop.wait(0.0005):
            moments.append(time.perf_counter())

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=count)
    try:
        sys.setswitchinterval(100)  # only who releases the lock lets the other thread run
        thread.start()
        begin = time.perf_counter()
        with watched() as session:
            _core.compile(session, module, {}, {})
        end = time.perf_counter()
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()
    assert sum(begin < moment < end for moment in moments) >= 2, end - begin


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_memory_stays_flat():
    """Of a static size: JAX itself keeps 100 kB of each trace with symbolic ones."""
    function = network(1)

    def convert(count: int) -> None:
        for _ in range(count):
            jaxport.to_onnx(function, [(4, 8)], return_mode="model").to_bytes()
        gc.collect()

    convert(CONVERSIONS // 2)
    before = resident()
    convert(CONVERSIONS)
    growth = resident() - before
    print(f"{CONVERSIONS} conversions: the resident size grew by {growth / 2**20:.2f} MiB")
    assert growth < 4 * 2**20


def test_nothing_of_the_extension_is_left_at_the_end():
    """nanobind lists objects that outlive the interpreter."""
    program = (
        "import jax, jaxport\n"
        "def main():\n"
        "    f = lambda x: jax.nn.softmax(x @ x.T)\n"
        "    model = jaxport.to_onnx(f, [('B', 8)], return_mode='model')\n"
        "    model.to_proto(), model.jir(), model.text(), model.stats()\n"
        "    try: jaxport.to_onnx(f, [('B', -1)])\n"
        "    except jaxport.ConversionError: pass\n"
        "main()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "JAXPORT_LEAK_WARNINGS": "1", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    assert "nanobind" not in run.stderr, run.stderr
