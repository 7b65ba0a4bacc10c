# SPDX-License-Identifier: Apache-2.0
"""python -m jaxport.migrate: which calls of a script change."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import pytest

from jaxport import migrate
from jaxport.migrate import Script

NOTHING = ()


def script(text: str) -> Script:
    return Script(dedent(text))


def remarks(found: Script) -> list[tuple[int, tuple[str, ...]]]:
    return [(finding.line, finding.remarks) for finding in found.calls]


def test_names_imported_from_the_package():
    found = script("""\
        from jax2onnx import to_onnx, allclose as close  # the exporter

        model = to_onnx(fn, [("B", 3)], opset=21, model_name="m")
        close(fn, "m.onnx", [x], rtol=1e-4)
        unrelated(model)
        """)
    assert remarks(found) == [(3, NOTHING), (4, NOTHING)]
    first = found.rewritten.splitlines()[0]
    assert first == "from jaxport import to_onnx, allclose as close  # the exporter"


def test_the_package_itself():
    found = script("""\
        import os, jax2onnx
        jax2onnx.to_onnx(fn, inputs)
        x = {"é": jax2onnx.allclose(fn, path, inputs)}
        """)
    assert remarks(found) == [(2, NOTHING), (3, NOTHING)]
    assert "jax2onnx" not in found.rewritten
    assert 'x = {"é": jaxport.allclose(fn, path, inputs)}' in found.rewritten


def test_the_package_under_another_name():
    found = script("""\
        import jax2onnx as j2o
        j2o.to_onnx(fn, inputs)
        """)
    assert remarks(found) == [(2, NOTHING)]
    assert found.rewritten == "import jaxport as j2o\nj2o.to_onnx(fn, inputs)\n"


def test_arguments_that_mean_something_else():
    found = script("""\
        from jax2onnx.plugins._post_check_onnx_graph import expect_graph
        from jax2onnx.user_interface import to_onnx
        to_onnx(fn, inputs, return_mode="ir")
        expect_graph(["Add"], mode="any")
        to_onnx(fn, inputs, loosen_internal_shapes=True)
        to_onnx(fn, inputs, None, "m", 23, True)
        """)
    assert remarks(found) == [
        (3, NOTHING),
        (4, ("mode='any' means the paths alone: must_absent holds all the same",)),
        (5, ("loosen_internal_shapes= has no counterpart",)),
        (6, ("only the first 5 arguments may be given by position",)),
    ]


def test_names_without_a_counterpart_stay_where_they_are():
    found = script("""\
        from jax2onnx import to_onnx, something_else
        from jax2onnx.plugins.plugin_system import register_primitive
        if True:
            from jax2onnx.plugins._post_check_onnx_graph import expect_graph as EG
        EG(["Gemm"])(to_onnx(fn, inputs))
        """)
    assert found.imports[0].remarks == ("something_else has no counterpart",)
    assert "jaxport.register_lowering" in found.imports[1].remarks[0]
    assert found.imports[2].remarks == ()
    assert found.rewritten.splitlines()[:5] == [
        "from jaxport import to_onnx",
        "from jax2onnx import something_else",
        "from jax2onnx.plugins.plugin_system import register_primitive",
        "if True:",
        "    from jaxport.testing import expect_graph as EG",
    ]
    assert remarks(found) == [(5, NOTHING), (5, NOTHING)]


def test_an_import_over_several_lines_keeps_its_comments():
    found = script("""\
        from jax2onnx import (  # why
            to_onnx,  # what
        )
        """)
    assert found.rewritten == "from jaxport import (  # why\n    to_onnx,  # what\n)\n"


def test_a_script_that_does_not_use_it():
    found = script("import jax\nfrom .jax2onnx import helper\n")
    assert not found.imports
    assert not found.calls
    assert found.rewritten == "import jax\nfrom .jax2onnx import helper\n"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("from jax2onnx import to_onnx\nto_onnx(f, i)\n", 0, "nothing but the import changes"),
        ("from jax2onnx import other\n", 1, "1 imports, 0 calls, 1 to look at"),
        ("from jax2onnx import (\n", 2, ""),
    ],
)
def test_the_command(tmp_path, capsys, text, code, line):
    path = tmp_path / "script.py"
    path.write_text(text)
    assert migrate.main([str(path)]) == code
    assert line in capsys.readouterr().out
    assert path.read_text() == text


def test_write_changes_the_file(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("from jax2onnx import to_onnx\nto_onnx(f, i)\n")
    command = [sys.executable, "-m", "jaxport.migrate", "--write", str(path)]
    result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert f"{path}:2: to_onnx(f, i)" in result.stdout
    assert path.read_text() == "from jaxport import to_onnx\nto_onnx(f, i)\n"
