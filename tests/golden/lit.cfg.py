# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F821  (lit defines config and lit_config)
"""Text tests: `lit tests/golden --param tools=<build folder with jaxport and jaxport-opt>`.

Without the parameter the folder is $JAXPORT_BUILD, or else build/dev.
"""

import os
import sys
from pathlib import Path

import lit.formats

root = Path(__file__).resolve().parents[2]
build = os.environ.get("JAXPORT_BUILD", root / "build" / "dev")
tools = Path(lit_config.params.get("tools", build)).resolve()

config.name = "golden"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".jir", ".onnxtxt", ".test"]
config.excludes = ["input"]  # folders of files that tests read
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(tools / "golden")

# filecheck stands beside the Python that runs lit.
path = [str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)

config.environment["JAXPORT_CHECK"] = "1"  # what every stage and pass makes is verified

each_model = f"{sys.executable} {Path(__file__).with_name('each_model.py')}"
config.substitutions.append(("%each_model", each_model))

# The superuser may write everywhere, so tests of permissions need somebody else.
if os.geteuid() != 0:
    config.available_features.add("not-root")

if lit_config.maxIndividualTestTime == 0:
    lit_config.maxIndividualTestTime = 20  # seconds
