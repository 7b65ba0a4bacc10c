# SPDX-License-Identifier: Apache-2.0
"""What an installed wheel must do: tools/smoke.sh runs it where nothing else is installed."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

import jaxport

SHAPES = [("B", 8)]


def layer(x):
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return jax.nn.softmax(x @ jnp.eye(8))


def command(*arguments: str) -> str:
    """The installed command, not one that lies beside this file."""
    path = Path(sys.executable).parent / "jaxport"
    return subprocess.run([path, *arguments], check=True, capture_output=True, text=True).stdout


def check_package() -> None:
    metadata = importlib.metadata.metadata("jaxport")
    files = {str(path) for path in importlib.metadata.files("jaxport") or ()}
    assert metadata["License-Expression"] == "Apache-2.0", metadata["License-Expression"]
    assert any(path.endswith("LICENSE") for path in files), "no LICENSE in the wheel"
    for name in ("py.typed", "_core.pyi", "web/page.html", "explorer/page.html"):
        assert f"jaxport/{name}" in files, name
    assert "site-packages" in str(importlib.resources.files("jaxport"))
    assert command("--version").split() == ["jaxport", jaxport.__version__]


def check_conversion(folder: Path) -> None:
    path = folder / "model.onnx"
    jaxport.to_onnx(layer, SHAPES, return_mode="file", output_path=path)
    same, message = jaxport.allclose(layer, path, SHAPES)
    assert same, message
    assert jaxport.verify(layer, path, SHAPES)
    assert "Softmax" in command("stats", str(path))
    assert "0 problems" in command("check", str(path))


def check_report(folder: Path) -> None:
    """A build without npm has no page, and a wheel without it must not be published."""
    model = jaxport.to_onnx(layer, SHAPES, return_mode="model")
    model.save(folder / "shown.onnx")
    model.save_report(folder / "model.html")
    command("report", str(folder / "shown.onnx"), "-o", str(folder / "file.html"))
    for name in ("model.html", "file.html"):
        page = (folder / name).read_text(encoding="utf-8")
        assert '"op":"Softmax"' in page, f"{name} does not hold the model"
        assert page.rstrip().endswith("</html>"), f"{name} is no whole page"


def main() -> None:
    check_package()
    with tempfile.TemporaryDirectory() as folder:
        check_conversion(Path(folder))
        check_report(Path(folder))
    print(
        f"jaxport {jaxport.__version__} works with JAX {jax.__version__}, Python {sys.version[:6]}"
    )


if __name__ == "__main__":
    main()
