# SPDX-License-Identifier: Apache-2.0
"""What watches a conversion: limits, dumps, messages, progress, Ctrl-C; cases that replay."""

from __future__ import annotations

import _thread
import os
import pty
import signal
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import Primitive

import jaxport
from jaxport import _core
from jaxport.session import watched
from jaxport.trace import trace

W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def network(x):
    return jax.nn.softmax(x @ W, axis=-1)


def doubled(times: int):
    """A program of a few equations that calls itself 2^times times."""

    def leaf(x):
        return jnp.sin(x) * 1.5

    fn = jax.jit(leaf)
    for _ in range(times):
        fn = jax.jit(lambda x, inner=fn: inner(inner(x) + 1.0))
    return fn


def command(*arguments: str) -> int:
    return _core.run_command(list(arguments), {})


def test_a_case_is_converted_as_it_was(tmp_path):
    model = jaxport.to_onnx(
        network,
        [("B", 4)],
        model_name="net 1",
        opset=20,
        without_rules=["softmax"],
        target="onnxruntime>=1.20",
        return_mode="model",
    )
    case, again = tmp_path / "case.jir", tmp_path / "again.onnx"
    case.write_text(model.jir())
    header = model.jir().splitlines()[1]
    assert header.startswith("// options: --opset=20 --target=onnxruntime>=1.20")
    assert command("replay", str(case), "-o", str(again)) == 0
    assert again.read_bytes() == model.to_bytes()


def test_stages_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXPORT_DUMP", str(tmp_path / "kept"))
    first = jaxport.to_onnx(network, [("B", 4)], return_mode="model")
    jaxport.to_onnx(network, [("B", 4)], return_mode="model", raise_=False)
    kept = tmp_path / "kept" / "001"
    assert (kept / "model.onnx").read_bytes() == first.to_bytes()
    assert "softmax(" in (kept / "2-raise.txt").read_text()
    assert "softmax(" not in (tmp_path / "kept" / "002" / "2-raise.txt").read_text()
    assert (tmp_path / "kept" / "002" / "0-program.jir").read_text().count("--no-raise") == 1


def test_an_error_says_how_to_repeat_it(tmp_path, monkeypatch):
    failing = Primitive("router")
    failing.def_abstract_eval(lambda x: x)
    with pytest.raises(jaxport.ConversionError) as without:
        jaxport.to_onnx(failing.bind, [("B", 4, 4)])
    assert "JAXPORT_DUMP=folder" in str(without.value)
    monkeypatch.setenv("JAXPORT_DUMP", str(tmp_path))
    with pytest.raises(jaxport.ConversionError) as kept:
        jaxport.to_onnx(failing.bind, [("B", 4, 4)])
    case = tmp_path / "001" / "0-program.jir"
    assert f"jaxport replay {case}" in str(kept.value)
    run = subprocess.run(
        [sys.executable, "-m", "jaxport", "replay", str(case)], capture_output=True, text=True
    )
    assert run.returncode == 2
    assert f"error[JXP-{kept.value.code}]" in run.stderr


def test_messages_go_to_standard_error(monkeypatch, capsys):
    monkeypatch.setenv("JAXPORT_LOG", "import,raise,write")
    jaxport.to_onnx(network, [("B", 4)], return_mode="model").to_bytes()
    text = capsys.readouterr().err
    assert "jaxport import: " in text
    assert "jaxport raise: softmax: raised" in text
    assert "jaxport lower" not in text


def test_who_listens_changes_nothing(tmp_path, monkeypatch):
    """Bodies of loops are held by pointers: a copy that is named for a dump names them in both."""

    def looped(x):
        return jax.lax.scan(lambda h, _: (network(h), h.max()), x, None, length=20)

    alone = jaxport.to_onnx(looped, [("B", 4)]).SerializeToString()
    monkeypatch.setenv("JAXPORT_DUMP", str(tmp_path))
    monkeypatch.setenv("JAXPORT_LOG", "axis,raise,lower,target,passes,names,time")
    assert jaxport.to_onnx(looped, [("B", 4)]).SerializeToString() == alone


def test_nobody_hears_anything_by_default(capfd):
    jaxport.to_onnx(network, [("B", 4)])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (jaxport.Limits(nodes=1000), "has more than 1000 equations"),
        (jaxport.Limits(seconds=0.2), "takes longer than 0.2 seconds"),
        (jaxport.Limits(depth=10), "nested more than 10 levels deep"),
    ],
)
def test_a_program_that_explodes_is_stopped(limits, message):
    with pytest.raises(jaxport.ConversionError) as stopped:
        jaxport.to_onnx(doubled(28), [("B", 4)], limits=limits)
    assert stopped.value.code == "E110"
    assert message in stopped.value.message


def test_a_model_that_is_too_large_leaves_the_old_one(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    with pytest.raises(jaxport.ConversionError) as stopped:
        jaxport.to_onnx(
            lambda x: x + np.ones(1000, np.float32),
            [(1000,)],
            return_mode="file",
            output_path=path,
            limits=jaxport.Limits(bytes=2000),
        )
    assert stopped.value.code == "E110"
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.onnx"]


def test_ctrl_c_ends_the_compiler():
    # A job in the background is started with this signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    module = trace(doubled(28), [("B", 4)]).module
    timer = threading.Timer(0.5, _thread.interrupt_main)
    with watched(jaxport.Limits(nodes=2**40, seconds=60)) as session:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            _core.compile(session, module, {}, {})
    signal.signal(signal.SIGINT, before)


SLOW = """
import time
import jax, jaxport
def slow(ctx, x, **params):
    time.sleep(2.6)
    return ctx.op.Tan(x)
jaxport.register_lowering("tan", slow)
print(jaxport.to_onnx(jax.numpy.tan, [(3,)], return_mode="model").stats()["nodes"])
"""


def test_progress_is_shown_on_a_terminal_after_two_seconds():
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    out, _ = process.communicate(timeout=120)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert out == b"1\n"
    assert b"jaxport: lower  2 s" in shown
    assert shown.endswith(b"\r\x1b[K")  # nothing is left on the line


SMALL_DISK = """
mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
"$2" -m jaxport convert "$3" -o "$1/m.onnx" $5 || exit 1
cp "$1"/* "$6"
"$2" -m jaxport convert "$4" -o "$1/m.onnx" $5 && exit 2
for file in "$1"/*; do cmp "$file" "$6/$(basename "$file")" || exit 3; done
test -z "$(ls -A "$1" | grep tmp)" || exit 4
mount -o remount,ro "$1" || exit 0
"$2" -m jaxport convert "$3" -o "$1/m.onnx" $5 && exit 5
for file in "$1"/*; do cmp "$file" "$6/$(basename "$file")" || exit 6; done
"""


@pytest.mark.parametrize("options", ["", "--inline-limit=0 --external-threshold=1"])
def test_a_full_or_read_only_disk_leaves_the_old_model(tmp_path, options):
    """In a mount of its own, so that it is a real one."""
    disk, copy = tmp_path / "disk", tmp_path / "copy"
    disk.mkdir()
    copy.mkdir()
    programs = []
    for size in (3000, 20000):
        weight = np.ones(size, np.float32)
        model = jaxport.to_onnx(lambda x, w=weight: x + w, [(size,)], return_mode="model")
        programs.append(tmp_path / f"{size}.jir")
        programs[-1].write_text(model.jir())
    arguments = [disk, sys.executable, *programs, options, copy]
    run = subprocess.run(
        [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            SMALL_DISK,
            "-",
            *arguments,
        ],
        capture_output=True,
        text=True,
    )
    if run.returncode == 77 or "unshare" in run.stderr:
        pytest.skip("no file system can be mounted here")
    assert run.returncode == 0, run.stdout + run.stderr
