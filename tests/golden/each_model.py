# SPDX-License-Identifier: Apache-2.0
"""Runs a command on every model of a file: `each_model.py file [--opset=18] command…`.

The file holds graphs in ONNX's own text syntax, one after the other; lines that start with # are
comments. Types of values in between are inferred by onnx where the file does not declare them. The
command gets the name of a model file as its last argument.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import onnx

HEADER = '<ir_version: {}, opset_import: ["" : {}]>\n'
GRAPH = re.compile(r"^\w+ \(.*?^\}$", re.MULTILINE | re.DOTALL)


def main() -> int:
    source, *command = sys.argv[1:]
    opset = int(command.pop(0).removeprefix("--opset=")) if command[0].startswith("--") else 23
    header = HEADER.format(10 if opset > 20 else 8, opset)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        for graph in GRAPH.findall(Path(source).read_text()):
            model = onnx.parser.parse_model(header + graph)
            onnx.save(onnx.shape_inference.infer_shapes(model, data_prop=True), path)
            code = subprocess.run([*command, path]).returncode
            if code != 0:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
