# SPDX-License-Identifier: Apache-2.0
"""Runs models in Chromium: a page asks a server on this machine for them and posts the results."""

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
# WebGPU needs Vulkan; for machines without a graphics card Chromium brings SwiftShader.
_OPTIONS = {
    "wasm": ("--disable-gpu",),
    "webgpu": (
        "--enable-unsafe-webgpu",
        "--enable-features=Vulkan",
        "--use-webgpu-adapter=swiftshader",
        "--use-vulkan=swiftshader",
        "--ignore-gpu-blocklist",
    ),
}


class Browser:
    """A browser without a window. `provider` is "wasm" or "webgpu". Close it after use."""

    def __init__(self, node_modules: Path, provider: str = "wasm") -> None:
        command = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if command is None:
            raise RuntimeError("no Chromium found; install chromium or google-chrome")
        self._tasks: queue.SimpleQueue[tuple[Path, str]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), _handler(self._tasks, node_modules / "onnxruntime-web", self._answers)
        )
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        url = f"http://127.0.0.1:{self._server.server_port}/#{provider}"
        options = ["--headless=new", "--no-sandbox", f"--user-data-dir={self._profile.name}"]
        self._browser = subprocess.Popen(
            [command, *options, *_OPTIONS[provider], url],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def infer(self, model: Path, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        """What infer.mjs answers. Raises RuntimeError when the browser does not answer."""
        self._tasks.put((model, json.dumps(inputs)))
        try:
            return self._answers.get(timeout=_SECONDS)
        except queue.Empty:
            raise RuntimeError(f"the browser gave no answer within {_SECONDS} s") from None

    def close(self) -> None:
        self._browser.kill()
        self._browser.wait()
        self._server.shutdown()
        self._server.server_close()
        self._profile.cleanup()


def _handler(
    tasks: queue.SimpleQueue[tuple[Path, str]],
    runtime: Path,
    answers: queue.SimpleQueue[dict[str, Any]],
) -> type[http.server.BaseHTTPRequestHandler]:
    current = Path()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self._body()
            self._answer(200 if body is not None else 404, body or b"")

        def _body(self) -> bytes | None:
            nonlocal current
            if self.path == "/":
                return (HERE / "page.html").read_bytes()
            if self.path == "/infer.mjs":
                return (HERE / "infer.mjs").read_bytes()
            if self.path == "/inputs":  # waits for the next task
                current, inputs = tasks.get()
                return inputs.encode()
            if self.path == "/model":
                return current.read_bytes()
            name = self.path.removeprefix("/onnxruntime-web/")
            file = runtime / name
            is_there = name != self.path and ".." not in name and file.is_file()
            return file.read_bytes() if is_there else None

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
