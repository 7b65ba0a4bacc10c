# SPDX-License-Identifier: Apache-2.0
"""Trains, exports and puts a page together that any web server can serve.

python -m examples.web --output build/digits --serve
"""

from __future__ import annotations

import argparse
import functools
import http.server
import shutil
from pathlib import Path

import jaxport

from .classifier import SIDE, reader, trained

PAGE = Path(__file__).parent / "page"
RUNTIME = (
    "ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
)


def build(folder: Path, node_modules: Path) -> float:
    """Writes page, model and runtime; gives the share of held-out digits that are read."""
    folder.mkdir(parents=True, exist_ok=True)
    network, share = trained()
    path = folder / "digits.onnx"
    jaxport.to_onnx(
        reader(network),
        {"ink": (SIDE, SIDE)},
        return_mode="file",
        output_path=path,
        output_names=["probabilities"],
        target="onnxruntime-web",
        export_mode="web",
    )
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)
    (folder / "runtime").mkdir(exist_ok=True)
    for name in RUNTIME:
        shutil.copy(node_modules / "onnxruntime-web" / "dist" / name, folder / "runtime")
    return share


def serve(folder: Path, port: int) -> None:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/ (Ctrl-C ends it)")
        server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.web")
    parser.add_argument("--output", type=Path, default=Path("build/digits"))
    parser.add_argument(
        "--node-modules",
        type=Path,
        default=Path("build/web/node_modules"),
        help="where npm install put onnxruntime-web",
    )
    parser.add_argument("--serve", action="store_true", help="serve the page on this machine")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    share = build(options.output, options.node_modules)
    size = (options.output / "digits.onnx").stat().st_size
    print(
        f"{options.output}: reads {share:.1%} of digits it has not seen; the model has {size:,} B"
    )
    if options.serve:
        serve(options.output, options.port)


if __name__ == "__main__":
    main()
