# SPDX-License-Identifier: Apache-2.0
"""Runs every benchmark in a process of its own, then rewrites docs/benchmarks.md: `make bench`."""

import subprocess
import sys
import time
from pathlib import Path

SCRIPTS = (
    "fleet.py",
    "conversion.py",
    "recurrent.py",
    "memory.py",
    "chain.py",
    "decode.py",
    "report.py",
    "transposed.py",
    "layers.py",
    "forms_report.py",
    "ops.py",
    "ops_report.py",
)


def main() -> None:
    start = time.monotonic()
    for script in SCRIPTS:
        print(f"\n=== {script}", flush=True)
        subprocess.run([sys.executable, Path(__file__).with_name(script)], check=True)
    print(f"\nall benchmarks: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
