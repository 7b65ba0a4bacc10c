# SPDX-License-Identifier: Apache-2.0
"""Writes all pictures to a folder, docs/images by default."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from .graphs import ROOT

PICTURES = {
    "axis-graph": "axis_graph",
    "before-after": "before_after",
    "benchmarks": "benchmarks",
    "forms": "forms",
    "layouts": "layouts",
    "pipeline": "pipeline",
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, module in PICTURES.items():
        picture = importlib.import_module(f"{__package__}.{module}").picture()
        (folder / f"{name}.svg").write_text(picture.render(), encoding="utf-8")
        print(f"{name}.svg: {picture.title}")


if __name__ == "__main__":
    main()
