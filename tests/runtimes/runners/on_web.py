# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime Web. After the folder of the tasks: "node", "wasm" or "webgpu", and node_modules."""

import sys
from pathlib import Path

import onnx
from tasks import Feed, NotLoadableError, Run, serve

from jaxport.web import Browser, Node, from_json, to_json


def input_names(model: Path) -> list[str]:
    graph = onnx.load(model, load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    return [value.name for value in graph.input if value.name not in weights]


def main() -> None:
    kind, node_modules = sys.argv[2], Path(sys.argv[3])
    place: Node | Browser = Node(node_modules) if kind == "node" else Browser(node_modules, kind)

    def load(model: Path) -> Run:
        names = input_names(model)

        def run(feeds: list[Feed]) -> list[Feed]:
            tensors = [to_json(name, array) for name, (array, _) in zip(names, feeds, strict=True)]
            answer = place.infer(model, tensors)
            if "outputs" in answer:
                return [(from_json(output)[1], 0) for output in answer["outputs"]]
            if not answer["loaded"]:
                raise NotLoadableError(answer["error"])
            raise RuntimeError(answer["error"])

        return run

    try:
        serve(load)
    finally:
        place.close()


if __name__ == "__main__":
    main()
