# SPDX-License-Identifier: Apache-2.0
"""How XLA compiles what runs once: in less time, to a program that means the same."""

from __future__ import annotations

from importlib.metadata import version

QUICK: dict[str, int | bool] = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_parallel_codegen_split_count": 1,
}
# What XLA does when nobody says otherwise.
CAREFUL: dict[str, int | bool] = {
    "xla_backend_optimization_level": 3,
    "xla_cpu_parallel_codegen_split_count": 32,
}
# Two thirds of the time; from 0.11 on XLA refuses the flag.
if tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11):
    QUICK["xla_cpu_use_fusion_emitters"] = False
    CAREFUL["xla_cpu_use_fusion_emitters"] = True


# The same for the environment.
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in QUICK.items())
