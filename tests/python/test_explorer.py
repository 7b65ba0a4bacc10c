# SPDX-License-Identifier: Apache-2.0
"""The report page: its data, the command, notebooks. web/test drives the page itself."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import jaxport
from jaxport import _core
from jaxport.explorer import page
from jaxport.explorer.data import of_model, page_data
from jaxport.verification.verify import layer_errors


def attention(queries, keys, values):
    scores = jnp.einsum("bqhd,bkhd->bhqk", queries, keys) * 0.25
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, values)


def near_miss(x):
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=0)[:, None]


def looped(x):
    return jax.lax.fori_loop(0, x.shape[0], lambda i, y: jnp.tanh(y) + x[i], x[0])


PROGRAMS = {
    "attention": (attention, [("B", 8, 2, 16)] * 3),
    "near miss": (near_miss, [(4, 4)]),
    "loop": (looped, [("T", 3)]),
    "calls": (jax.jit(lambda x: jax.nn.gelu(jax.nn.softmax(x)).T), [("B", 4)]),
    "scan": (lambda x: jax.lax.scan(lambda c, r: (c + r, c * r), x[0], x), [(5, 3)]),
}


def explored(fn, inputs, **options):
    model = jaxport.to_onnx(fn, inputs, return_mode="model", **options)
    return model, json.loads(model.explored())


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_explored_is_the_model(name):
    """Flattening the program and numbering its equations changes no node."""
    model, data = explored(*PROGRAMS[name])
    plain = json.loads(_core.explore_model(model.to_bytes()))
    assert data["values"] == plain["values"]
    for node, of_file in zip(data["nodes"], plain["nodes"], strict=True):
        for key in ("op", "name", "in", "out", "graph", "attrs", "flops"):
            assert node.get(key) == of_file.get(key)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_equation_has_a_place_in_every_form(name):
    _, data = explored(*PROGRAMS[name])
    made = {node.get("equation") for node in data["nodes"]}
    raised = {equation for _, equation in data["raised"]["marks"]}
    lines = data["program"]["text"].splitlines()
    for line, number in data["program"]["marks"]:
        equation = data["equations"][number]
        assert f"= {equation['primitive']}" in lines[line]
        assert equation["nodes"]
        assert set(equation["nodes"]) <= made
        assert equation["raised"]
        assert set(equation["raised"]) <= raised


def test_what_became_one_node_is_linked_with_it():
    _, data = explored(*PROGRAMS["attention"])
    (node,) = [node for node in data["nodes"] if node["op"] == "Attention"]
    whole = [e for e in data["equations"] if node["equation"] in e["nodes"]]
    primitives = [equation["primitive"] for equation in whole]
    assert {"exp", "reduce_max", "reduce_sum", "div"} <= set(primitives)
    assert primitives.count("dot_general") == 2
    assert data["equations"][node["equation"]]["rule"] == "attention"
    assert node["flops"] == 2 * 2 * 2 * 8 * 8 * 16  # two products of eight queries and eight keys


def test_a_near_miss_is_with_its_equation():
    _, data = explored(*PROGRAMS["near miss"])
    (found,) = [e for e in data["equations"] if "remarks" in e]
    assert found["primitive"] == "div"
    assert "softmax: the sum runs over other axes" in found["remarks"][0]


def test_layers_are_those_of_the_weights():
    """Zeros are one weight of the model, and yet each layer has its own."""

    class Net(nnx.Module):
        def __init__(self):
            rngs = nnx.Rngs(0)
            self.layers = nnx.List([nnx.Linear(3, 3, rngs=rngs) for _ in range(2)])

        def __call__(self, x):
            for layer in self.layers:
                x = x + jnp.tanh(layer(x))
            return x

    _, data = explored(Net(), [(5, 7, 3)])
    layers = [node.get("layer") for node in data["nodes"] if node["op"] in ("MatMul", "Gemm")]
    assert layers == ["layers.0", "layers.1"]
    adds = [node.get("layer") for node in data["nodes"] if node["op"] == "Add"]
    assert "layers.1" in adds


def test_the_layer_of_a_call_is_the_one_around_all_its_weights():
    class Block(nnx.Module):
        def __init__(self, rngs):
            self.first, self.second = nnx.Linear(3, 3, rngs=rngs), nnx.Linear(3, 3, rngs=rngs)

        def __call__(self, x):
            return x + self.second(jnp.tanh(self.first(x)))

    class Net(nnx.Module):
        def __init__(self):
            self.blocks = nnx.List([Block(nnx.Rngs(i)) for i in range(2)])

        def __call__(self, x):
            for block in self.blocks:
                x = block(x)
            return x

    _, data = explored(Net(), [(5, 3)], functions="auto")
    calls = [node.get("layer") for node in data["nodes"] if node.get("domain")]
    assert calls == ["blocks.0", "blocks.1"]


def test_scopes_of_jax_are_layers():
    def scoped(x):
        with jax.named_scope("encoder"), jax.named_scope("first"):
            x = jnp.sin(x)
        return jnp.cos(x)

    _, data = explored(scoped, [(3,)])
    assert [node.get("layer") for node in data["nodes"]] == ["encoder.first", None]


def test_nodes_that_the_target_made_say_so():
    _, data = explored(jnp.tanh, [jax.ShapeDtypeStruct((3,), jnp.bfloat16)])
    made = {node["op"]: node["made"] for node in data["nodes"]}
    assert made["Cast"] == "target"


def test_runtimes_are_those_of_the_command(tmp_path):
    """Also where they differ: JavaScript has no bfloat16, ONNX Runtime and OpenVINO have."""
    model, data = explored(jnp.negative, [jax.ShapeDtypeStruct((3,), jnp.bfloat16)])
    model.save(tmp_path / "m.onnx")
    said = json.loads(run(tmp_path, "targets", "m.onnx", "--json").stdout)
    names = {"ONNX Runtime": "onnxruntime", "ONNX Runtime Web": "onnxruntime-web"}
    assert len(data["runtimes"]) == 3
    for runtime in data["runtimes"]:
        of_command = said[names.get(runtime["name"], runtime["name"].lower())]
        loads = [not misfits for misfits in of_command.values()]
        assert [not version["misfits"] for version in runtime["versions"]] == loads
        assert bool(runtime["needs"]) == loads[-1]
        assert runtime["needs"] or runtime["name"] == "ONNX Runtime Web"


def test_a_runtime_that_is_too_old_says_what_to_change():
    _, data = explored(*PROGRAMS["attention"])
    assert data["runtimes"][0]["needs"] == "1.23"
    assert "--opset auto" in data["runtimes"][0]["advice"]


def data_of_page(text):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found)


def test_a_page_has_the_source_and_the_verification(tmp_path):
    path = tmp_path / "report.html"
    jaxport.to_onnx(attention, [("B", 8, 2, 16)] * 3, verify=True, report=path)
    text = path.read_text()
    data = data_of_page(text)
    (file,) = data["files"]
    assert file["lines"] == Path(__file__).read_text().splitlines()
    assert data["verification"]["verdict"] == "same"
    assert any(error["node"].endswith("Attention") for error in data["errors"])
    assert not re.search(r"(src|href)=.https?:", text)
    assert len(text) - len(json.dumps(data)) < 2_000_000


def test_a_page_holds_any_text():
    """What ends a script in HTML does not end the data."""
    model = jaxport.to_onnx(jnp.sin, [(3,)], return_mode="model")
    title = "</script><!--<b>"
    text = page.html(page_data(model.explored(), title))
    assert data_of_page(text)["title"] == title


def test_long_files_are_cut():
    files = page.source_files(["a.py:2000 in f", "b.py:9 in g"], lambda name: ["x\n"] * 3000)
    assert [(file["first"], len(file["lines"])) for file in files] == [(1960, 81), (1, 49)]
    assert page.source_files(["a.py:5 in f"], lambda name: []) == []


def test_a_model_that_names_other_files_does_not_get_them(tmp_path, monkeypatch):
    """Only Python files below the current folder, also behind links and "..", become a part."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    for path in (tmp_path / "out.py", here / "in.py", here / "key.pem"):
        path.write_text("secret\n")
    (here / "link.py").symlink_to(tmp_path / "out.py")
    outside = ("../out.py", str(tmp_path / "out.py"), "key.pem", "link.py", "/etc/passwd", "no.py")
    assert [page.lines_from_here(name) for name in outside] == [[]] * len(outside)
    assert page.lines_from_here("in.py") == ["secret\n"]


def test_an_installation_without_the_page_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(page, "_template", lambda: tmp_path / "page.html")
    with pytest.raises(jaxport.ConversionError, match="no report page") as caught:
        jaxport.to_onnx(jnp.sin, [(3,)], report=tmp_path / "report.html")
    assert caught.value.code == "E113"


def test_a_page_that_cannot_be_written(tmp_path):
    with pytest.raises(jaxport.ConversionError) as caught:
        jaxport.to_onnx(jnp.sin, [(3,)], report=tmp_path / "missing" / "report.html")
    assert caught.value.code == "E051"


def test_errors_of_nodes():
    weights = np.random.default_rng(0).standard_normal((3, 4), np.float32)

    def net(x):
        return jnp.tanh(x @ weights).sum(axis=1)

    model = jaxport.to_onnx(net, [(5, 3)], return_mode="model")
    errors = layer_errors(net, model, [(5, 3)])
    assert [error.node for error in errors] == [node["name"] for node in _nodes(model)]
    assert all(0 <= error.relative < 1e-5 for error in errors)


def _nodes(model):
    return json.loads(model.explored())["nodes"]


# --- the command


def run(folder, *arguments):
    command = [sys.executable, "-m", "jaxport", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_the_command_writes_pages(tmp_path):
    (tmp_path / "program.py").write_text("import jax\n\ndef net(x):\n    return jax.nn.gelu(x)\n")
    done = run(tmp_path, "report", "program:net", "--input", "x:Bx4", "--verify", "-o", "f.html")
    assert done.returncode == 0, done.stderr
    data = data_of_page((tmp_path / "f.html").read_text())
    assert data["files"][0]["name"] == "program.py"
    assert data["verification"]["verdict"] == "same"

    run(tmp_path, "convert", "program:net", "--input", "x:Bx4", "-o", "m.onnx")
    done = run(tmp_path, "report", "m.onnx", "-o", "m.html")
    assert done.returncode == 0, done.stderr
    data = data_of_page((tmp_path / "m.html").read_text())
    assert data["title"] == "m.onnx"
    assert data["files"][0]["lines"][3] == "    return jax.nn.gelu(x)"
    assert "program" not in data


def test_the_command_profiles(tmp_path):
    model = jaxport.to_onnx(lambda x: jnp.tanh(x @ x.T), [("B", "B")], return_mode="model")
    model.save(tmp_path / "m.onnx")
    arguments = ("profile", "m.onnx", "--size", "B=8", "--runs", "2", "--report", "p.html")
    done = run(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert "by op" in done.stdout
    assert "Tanh" in done.stdout
    profile = data_of_page((tmp_path / "p.html").read_text())["profile"]
    assert profile["sizes"] == {"B": 8}
    assert profile["seconds"] > 0
    assert "jax" not in profile
    bad = run(tmp_path, "profile", "m.onnx", "--size", "8")
    assert bad.returncode == 2
    assert "E092" in bad.stderr


def test_the_command_profiles_a_function_beside_jax(tmp_path):
    """The inputs in any order, a keyword argument, and choices of the conversion."""
    (tmp_path / "program.py").write_text(
        "import jax.numpy as jnp\n\n\n"
        "def net(x, y, *, scale=1.0):\n    return jnp.tanh(x @ y.T) * scale\n"
    )
    arguments = ("--input", "y:5x4", "--input", "x:Bx4", "--params", "scale=0.5", "--opset", "20")
    times = ("--size", "B=8", "--runs", "2", "--report", "p.html")
    done = run(tmp_path, "profile", "program:net", *arguments, *times)
    assert done.returncode == 0, done.stderr
    assert "jax.jit" in done.stdout
    assert "program.py:5" in done.stdout
    data = data_of_page((tmp_path / "p.html").read_text())
    assert data["model"]["opset"] == 20
    assert data["files"][0]["lines"][3].startswith("def net(x, y")
    assert data["profile"]["sizes"] == {"B": 8}
    assert data["profile"]["jax"] > 0
    assert "program" in data
    bad = run(tmp_path, "profile", "program:none", "--input", "x:Bx4")
    assert bad.returncode == 2
    assert "has no 'none'" in bad.stderr


def test_profiles_have_nodes_lines_and_jax():
    def net(x):
        y = jnp.tanh(x @ jnp.ones((64, 64)))
        return jax.nn.softmax(y)

    inputs = [("B", 64)]
    model = jaxport.to_onnx(net, inputs, return_mode="model")
    found = jaxport.profile(net, inputs, model, sizes={"B": 32}, runs=3)
    assert found.jax is not None
    assert found.jax > 0
    assert set(found.nodes) <= {node["name"] for node in _nodes(model)}
    assert sum(found.nodes.values()) > 0
    assert any("test_explorer.py" in line for line in found.lines)
    assert "jax.jit" in str(found)
    assert found.data()["jax"] == found.jax


# --- notebooks


def test_a_model_has_a_picture_of_itself():
    model = jaxport.to_onnx(attention, [("B", 8, 2, 16)] * 3, return_mode="model")
    text = model._repr_html_()
    assert "queries: f32[B,8,2,16]" in text
    assert "<svg" in text
    assert "Attention" in text


def test_a_model_says_in_one_line_what_it_is():
    model = jaxport.to_onnx(attention, [("B", 8, 2, 16)] * 3, return_mode="model")
    inputs = ", ".join(f"{name}: f32[B,8,2,16]" for name in ("queries", "keys", "values"))
    output = model.interface()["outputs"][0][0]
    (count,) = (model.stats()["nodes"],)
    text = f"<jaxport.Model attention({inputs}) -> ({output}: f32[B,8,2,16]), {count} nodes, "
    assert repr(model).startswith(text)
    weights = np.ones((1000, 500), np.float32)

    def many(*rows):
        return sum(rows) @ weights

    model = jaxport.to_onnx(many, [(1000,)] * 9, return_mode="model")
    assert "f32[1000], 5 more) -> (" in repr(model)
    assert repr(model).endswith(" nodes, 2 MB of weights>")
    assert "\n" not in repr(model)


def notebooks():
    class ZMQInteractiveShell:
        """Jupyter's."""

    class Shell(ZMQInteractiveShell):
        """Colab's."""

    class TerminalInteractiveShell:
        """No notebook."""

    shells = [(ZMQInteractiveShell(), True), (Shell(), True), (TerminalInteractiveShell(), False)]
    for shell, is_notebook in [*shells, (None, False)]:
        module = types.SimpleNamespace(get_ipython=lambda shell=shell: shell)
        yield pytest.param("IPython", module, is_notebook, id=type(shell).__name__)
    for is_notebook in (True, False):
        module = types.SimpleNamespace(running_in_notebook=lambda answer=is_notebook: answer)
        yield pytest.param("marimo", module, is_notebook, id=f"marimo {is_notebook}")


@pytest.mark.parametrize(("package", "module", "is_notebook"), list(notebooks()))
def test_show_is_a_frame_in_notebooks(package, module, is_notebook, monkeypatch):
    monkeypatch.setitem(sys.modules, package, module)
    monkeypatch.delitem(sys.modules, {"IPython": "marimo", "marimo": "IPython"}[package], False)
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    shown = jaxport.to_onnx(jnp.sin, [(3,)], return_mode="model").show(height=300)
    assert bool(opened) != is_notebook
    if is_notebook:
        frame = shown._repr_html_()
        assert frame.startswith("<iframe srcdoc=")
        assert "height:300px" in frame
        (page_text,) = re.findall(r'srcdoc="([^"]*)"', frame)
        assert data_of_page(html.unescape(page_text))["nodes"][0]["op"] == "Sin"


def test_show_opens_the_browser_outside_of_notebooks(monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    model = jaxport.to_onnx(attention, [("B", 8, 2, 16)] * 3, return_mode="model")
    path = model.show()
    assert opened == [f"file://{path}"]
    assert data_of_page(Path(path).read_text())["title"] == of_model(model)["title"]
