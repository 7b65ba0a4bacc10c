# SPDX-License-Identifier: Apache-2.0
"""Runs a model in Chromium: a page from a server on this machine posts the outputs back."""

from __future__ import annotations

import http.server
import json
import queue
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_TYPES = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm"}
_SECONDS = 120


def run(node_modules: Path, model: Path, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs of a model. Raises RuntimeError when the browser cannot run it."""
    command = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if command is None:
        raise RuntimeError("no Chromium found; install chromium or google-chrome")
    pages = {
        "/": (HERE / "page.html").read_bytes(),
        "/infer.mjs": (HERE / "infer.mjs").read_bytes(),
        "/model": model.read_bytes(),
        "/inputs": json.dumps(inputs).encode(),
    }
    answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), _handler(pages, node_modules / "onnxruntime-web", answers)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            answer = _visit(command, f"http://127.0.0.1:{server.server_port}/", answers)
        finally:
            server.shutdown()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    outputs: list[dict[str, Any]] = answer["outputs"]
    return outputs


def _visit(command: str, url: str, answers: queue.SimpleQueue[dict[str, Any]]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        browser = subprocess.Popen(
            [command, *options, url], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            return answers.get(timeout=_SECONDS)
        except queue.Empty:
            raise RuntimeError(f"the browser gave no answer within {_SECONDS} s") from None
        finally:
            browser.kill()
            browser.wait()


def _handler(
    pages: dict[str, bytes], runtime: Path, answers: queue.SimpleQueue[dict[str, Any]]
) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = pages.get(self.path)
            name = self.path.removeprefix("/onnxruntime-web/")
            if body is None and name != self.path and ".." not in name:
                body = (runtime / name).read_bytes()
            self._answer(200 if body is not None else 404, body or b"")

        def do_POST(self) -> None:
            answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(200, b"")

        def _answer(self, status: int, body: bytes) -> None:
            kind = _TYPES.get(Path(self.path).suffix, "text/html; charset=utf-8")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
