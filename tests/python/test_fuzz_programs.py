# SPDX-License-Identifier: Apache-2.0
"""The search for counterexamples finds what is planted, and nothing else."""

import ast
import dataclasses
import runpy

import jax.numpy as jnp
import numpy as np
import pytest

from fuzz.programs.generate import generate
from fuzz.programs.judge import Outcome, judge
from fuzz.programs.program import Input, Program, Step, function_of, module_source
from fuzz.programs.report import find_source
from fuzz.programs.shrink import Case, at_turn, shrunk
from fuzz.programs.values import KINDS, arrays
from fuzz.programs.worker import Task, Worker

SEEDS = range(400, 430)


def program(*texts, dtype="f32", shape=(3, 4), values=("normal",)):
    """Steps that each take the result before them."""
    names = ["x", *(f"v{i}" for i in range(len(texts)))]
    steps = tuple(Step((names[i + 1],), text, (names[i],)) for i, text in enumerate(texts))
    return Program((Input("x", dtype, shape),), steps, (names[-1],), values=values)


def outcome(prog, change=None, given=()):
    """What the judge says when the model computes change(result)."""

    def alter(f):
        return (lambda *xs: change(f(*xs))) if change else f

    return judge(prog, given, alter)


def test_a_seed_is_one_program():
    first = [generate(seed) for seed in SEEDS]
    assert first == [generate(seed) for seed in SEEDS]
    assert len({module_source(prog) for prog in first}) > 0.9 * len(first)


def test_a_seed_is_the_same_program_in_another_process_and_a_crash_is_an_outcome():
    worker = Worker(limit=60)
    try:
        assert worker.run(Task(seed=401))[0] == generate(401)
        prog, crashed = worker.run(Task(seed=402, fault="crash"))
        assert crashed.kind == "crash"
        assert prog == generate(402)
        assert worker.run(Task(seed=403))[1].kind in ("right", "known", "unstable")
        worker._limit = 0.1
        assert worker.run(Task(seed=404, fault="hang"))[1].kind == "timeout"
        worker._limit = 3
        assert worker.run(Task(seed=405, fault="spin"))[1].detail == "more than 3 s"
    finally:
        worker.stop()


def test_sources_are_python():
    for seed in SEEDS:
        tree = ast.parse(module_source(generate(seed)))
        assert any(isinstance(node, ast.FunctionDef) and node.name == "f" for node in tree.body)


def test_a_find_runs_by_itself(tmp_path, capsys):
    case = at_turn(program("jnp.sin($0)", "$0 * 2.0"), 0)
    path = tmp_path / "find.py"
    path.write_text(find_source(7, case, Outcome("wrong", "by hand")))
    runpy.run_path(str(path), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("JAX")
    assert "model" in printed


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_every_kind_and_dtype(kind):
    dtypes = ("f32", "f16", "bf16", "c64", "i8", "u32", "boolean")
    inputs = tuple(Input(f"x{i}", dtype, (3, 0 if i == 2 else 4)) for i, dtype in enumerate(dtypes))
    first, second = (arrays(Program(inputs, (), ("x0",), values=(kind,)), 0) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


def test_a_right_program_is_found_right():
    for prog in (
        program("jnp.sin($0)", "$0 @ $0.T"),
        program("jax.nn.softmax($0)", dtype="f16"),
        program("$0 * 3", dtype="i8", values=("normal", "large")),
    ):
        assert outcome(prog).kind == "right"


@pytest.mark.parametrize(
    ("prog", "change"),
    [
        (program("jnp.sin($0)"), lambda y: y * 1.0001),
        (program("jnp.sin($0)"), lambda y: y.at[0, 0].add(1e-5)),
        (program("$0 + 1", dtype="i32"), lambda y: y.at[1, 2].add(1)),
        (program("$0 > 0"), lambda y: y.at[0, 1].set(~y[0, 1])),
        (program("$0 * 2.0", dtype="bf16"), lambda y: y * 1.05),
        (program("jnp.sum($0)"), lambda y: y[None]),
        (program("jnp.maximum($0, 1.5)", values=("infinite",)), lambda y: jnp.clip(y, -3e38, 3e38)),
        (program("jax.nn.softmax($0) @ $0.T"), lambda y: y + 1e-4),
    ],
)
def test_a_planted_fault_is_found(prog, change):
    assert outcome(prog, change).kind == "wrong"


def test_digits_that_jax_does_not_have_are_not_asked_for():
    prog = program("jnp.sum($0 * 1e6) - 1e6 * jnp.sum($0)")
    assert outcome(prog, lambda y: y + 0.01).kind == "unstable"
    assert outcome(prog, lambda y: y + 1e4).kind == "wrong"


def test_documented_differences_excuse_only_what_depends_on_them():
    prog = program("jnp.max($0, axis=1)")
    values = np.asarray([[1, np.nan, 3], [4, 5, 6]], np.float32)
    prog = Program((Input("x", "f32", (2, 3)),), prog.steps, prog.outputs)
    of_nan = outcome(prog, lambda y: y.at[0].set(3.0), [[values]])
    assert of_nan.kind == "known", of_nan
    assert "NaN" in of_nan.detail
    assert outcome(prog, lambda y: y.at[1].set(5.0), [[values]]).kind == "wrong"


def test_fewer_digits_excuse_no_larger_difference():
    prog = program("jax.nn.gelu($0, approximate=False)")
    far_left = [[np.full((3, 4), -5.0, np.float32)]]
    assert outcome(prog, lambda y: y + 1e-7, far_left).kind == "known"
    assert outcome(prog, lambda y: y + 1e-5, far_left).kind == "wrong"


def test_only_an_exponential_that_overflows_excuses_a_finite_result():
    prog = program("jnp.exp($0) / jnp.sum(jnp.exp($0), axis=1, keepdims=True)")
    rows = np.asarray([[1000, 1001], [1, 2]], np.float32)
    prog = Program((Input("x", "f32", (2, 2)),), prog.steps, prog.outputs)
    assert outcome(prog, None, [[rows * 1e35]]).kind == "known"
    assert outcome(prog, lambda y: y.at[1].set(0.5), [[rows]]).kind == "wrong"
    assert outcome(prog, lambda y: y.at[1].set(jnp.inf), [[rows]]).kind == "wrong"


def test_only_parts_that_overflow_excuse_a_product_that_does():
    prog = program("jnp.prod($0, axis=1)", shape=(2, 4))
    huge = [[np.asarray([[0, 4, 3, 1.4e38], [0, 4, 3, 1]], np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(jnp.nan), huge).kind == "known"
    assert outcome(prog, lambda y: y.at[0].set(1.0), huge).kind == "wrong"
    assert outcome(prog, lambda y: y.at[1].set(jnp.nan), huge).kind == "wrong"
    infinite = [[np.asarray([[1, 4, 3, jnp.inf], [0, 4, 3, 1]], np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(jnp.nan), infinite).kind == "wrong"


def test_parts_that_overflow_excuse_what_a_comparison_makes_of_them():
    text = "jnp.where(jnp.sum($0, axis=1, keepdims=True) < 9, $0, 2.0)"
    prog = program(text, shape=(2, 3))
    huge = [[np.asarray([[3e38, 3e38, -3e38], [1, 2, 3]], np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(jnp.asarray(huge[0][0][0])), huge).kind == "known"
    assert outcome(prog, lambda y: y.at[0].set(5.0), huge).kind == "wrong"
    assert outcome(prog, lambda y: y.at[1].set(2.0), huge).kind == "wrong"


def test_what_large_parts_absorb_depends_on_their_order():
    prog = program("jnp.sum($0, axis=1)", shape=(2, 4))
    rows = [[np.asarray([[3e38, 4, 1, -3e38], [3, 4, 1, 1]], np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(-1.0), rows).kind != "wrong"
    assert outcome(prog, lambda y: y.at[0].set(1e34), rows).kind == "wrong"
    small = [[np.asarray([[5, 4, 1, -6], [3, 4, 1, 1]], np.float32)]]
    assert outcome(prog, lambda y: y.at[1].set(8.0), small).kind == "wrong"


def test_bits_of_a_number_that_overflows_are_not_compared():
    prog = program("jnp.sum($0, axis=1)", "lax.bitcast_convert_type($0, i32)", shape=(2, 3))
    huge = [[np.asarray([[3e38, 3e38, -3e38], [1, 2, 3]], np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(7), huge).kind == "unstable"
    assert outcome(prog, lambda y: y.at[1].set(7), huge).kind == "wrong"


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("jnp.exp($0)", [-95, -200, -200, -200, -80]),
        ("$0 * $0", [1e-21, 1e-30, 1e-30, 1e-30, 1]),
        ("1e-30 / $0", [1e11, 1e30, 1e30, 1e30, 1]),
    ],
)
def test_only_a_subnormal_number_is_or_is_not_zero(text, row):
    prog = program(text, "($0 != 0).astype(f32)", "$0 / jnp.sum($0) ** 2", shape=(5,))
    rows = [[np.asarray(row, np.float32)]]
    assert outcome(prog, lambda y: y.at[0].set(0.25), rows).kind == "known"
    assert outcome(prog, lambda y: y.at[1].set(0.25), rows).kind == "wrong"


def test_scores_of_attention_that_overflow_in_16_bits():
    prog = program("jax.nn.softmax($0 @ ($0 * $0).mT) @ $0", dtype="f16", shape=(2, 2))
    rows = [[np.asarray([[-0.05, 200], [300, 250]], np.float16)]]
    assert outcome(prog, None, rows).kind == "known"
    assert outcome(prog, lambda y: y * 10, rows).kind == "wrong"


def test_only_finite_parts_of_a_scaled_product_overflow():
    prog = program("jnp.maximum($0 @ ($0 * 2.0).T, -3.0)", shape=(2, 2))
    for part, kind in ((-1e32, "known"), (-np.inf, "wrong")):
        rows = [[np.asarray([[1, part], [1, 2]], np.float32)]]
        assert outcome(prog, lambda y: y.at[0, 1].set(jnp.nan), rows).kind == kind


def test_where_jax_overflows_the_exact_result_is_asked_for():
    prog = program("jax.nn.softmax($0 @ $0.T) @ $0", dtype="f16", shape=(2, 2))
    rows = [[np.asarray([[900, 300], [-2, 500]], np.float16)]]
    assert outcome(prog, None, rows).kind == "unstable"
    assert outcome(prog, lambda y: y * 1.2, rows).kind == "wrong"


def test_bits_beside_an_overflow_do_not_hide_the_exact_result():
    prog = program("$0 * $0 - $0 * $0 + $0", "lax.bitcast_convert_type($0 * 0.0, i32)")
    prog = dataclasses.replace(prog, outputs=("v0", "v1"))
    large = [[np.full((3, 4), 1e30, np.float32)]]

    def alter(factor):
        return lambda f: lambda x: (x * factor, f(x * 0)[1])

    assert judge(prog, large, alter(1.0)).kind == "unstable"
    assert judge(prog, large, alter(1.1)).kind == "wrong"


def test_large_whole_numbers_round():
    prog = program("$0 @ $0.T", "lax.bitcast_convert_type($0, i32)", shape=(2, 2))
    rows = [[np.asarray([[-11.1, 16538.6], [158828576.0, 2932.3]], np.float32)]]
    assert outcome(prog, lambda y: y + 1, rows).kind == "unstable"
    assert outcome(prog, lambda y: y + 1, [[np.ones((2, 2), np.float32)]]).kind == "wrong"


@pytest.mark.parametrize(("size", "kind"), [(0, "no empty"), (2, "right")])
def test_documented_refusals_of_nothing(size, kind):
    prog = program("jax.nn.softmax($0 @ $0.mT) @ $0", shape=("B", 3, 4))
    assert outcome(dataclasses.replace(prog, sizes=({"B": size},))).kind == kind


def test_a_part_that_an_empty_axis_does_not_have_is_not_compared():
    text = "jax.grad(lambda a: jnp.sum(a[:1] ** 2))($0)"
    prog = dataclasses.replace(program(text, shape=("B", 3)), sizes=({"B": 0},))
    assert outcome(prog).kind == "right"
    assert outcome(program(text), lambda y: y * 2).kind == "wrong"


def test_shrinking_keeps_the_fault_and_little_else():
    texts = ("jnp.sin($0)", "$0 + 1.0", "jnp.cumsum($0, axis=1)", "$0 * 2.0", "jnp.sum($0)")
    prog = program(*texts, shape=(5, 6))

    def ask(case):
        function_of(case.program)
        found = any("cumsum" in step.text for step in case.program.steps)
        return Outcome("wrong" if found else "right")

    case, _ = shrunk(at_turn(prog, 0), Outcome("wrong"), ask, seconds=60, most=500)
    assert [step.text for step in case.program.steps] == ["jnp.cumsum($0, axis=1)"]
    assert [given.shape for given in case.program.inputs] == [(1, 1)]
    assert isinstance(case, Case)
