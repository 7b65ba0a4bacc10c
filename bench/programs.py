# SPDX-License-Identifier: Apache-2.0
"""Programs on which the core is measured without Python: `python bench/programs.py FOLDER`.

The networks are those of bench/networks, narrow, because weights are text in a .jir file.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from chain import pointwise_block, program, softmax_block
from networks.network import Network, image, of_module
from networks.sequence import TOKENS_INPUT, Decoder
from networks.vision import ResNet, vit

import jaxport


def traced(network: Network) -> Callable[[], str]:
    def text() -> str:
        model = jaxport.to_onnx(network.build(), network.structs(), return_mode="model")
        return model.jir()

    return text


# What a name says before its comma is the name of its file.
PROGRAMS: dict[str, Callable[[], str]] = {
    "pointwise chain, 10,000 equations": lambda: program(pointwise_block, 10_000),
    "softmax chain, 10,000 equations": lambda: program(softmax_block, 10_000),
    "ViT, 12 layers": traced(Network("", vit(24, 3, 12), (image(1, 224),))),
    "ResNet-50": traced(
        Network("", of_module(lambda rngs: ResNet(rngs, width=2)), (image(1, 64),))
    ),
    "decoder, 6 layers": traced(
        Network("", of_module(lambda rngs: Decoder(rngs, 32, 64)), (TOKENS_INPUT,), 64)
    ),
}


def written(folder: Path) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: folder / f"{name.partition(',')[0]}.jir" for name in PROGRAMS}
    for name, path in paths.items():
        path.write_text(PROGRAMS[name]())
    return paths


if __name__ == "__main__":
    written(Path(sys.argv[1]))
