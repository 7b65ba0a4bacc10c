"""The compiler of jaxport."""

from collections.abc import Callable, Sequence
import os
from typing import Any


class Session:
    """Who watches a conversion: limits, messages, progress."""

    def __init__(self, nodes: int, bytes: int, depth: int, seconds: float | None, dump: str, log: str, shows_progress: bool, print: Callable) -> None: ...

    def folder(self) -> str:
        """Where this conversion is kept; "" when it is not."""

    def close(self) -> None:
        """Nobody is called and nothing is shown from here on."""

class Module:
    """A traced program: front IR."""

    def text(self, locations: bool = True, constants: bool = True) -> str:
        """The program as .jir text."""

    @property
    def name(self) -> str:
        """The name of the function that was traced."""

def import_jaxpr(session: Session, jaxpr: object, reader: object, name: str, input_names: Sequence[str], output_names: Sequence[str], path_of: object, constraints: Sequence[str]) -> Module:
    """
    Reads what jax.make_jaxpr returns; constants stay views of JAX's buffers.
    """

class Value:
    """A value of the model under construction."""

    @property
    def dtype(self) -> str:
        """The element type: f32, i64, …"""

    @property
    def shape(self) -> list:
        """Sizes: integers, or expressions as text."""

class Lowering:
    """An equation that a lowering turns into nodes."""

    @property
    def operands(self) -> list[Value]:
        """The operands, in order."""

    @property
    def params(self) -> dict:
        """The parameters of the equation."""

    @property
    def opset(self) -> int:
        """The opset of the model."""

    def call(self, op: str, operands: Sequence[Value | None], attributes: dict, outputs: int) -> list[Value]:
        """Adds a node; None is an absent operand."""

    def constant(self, array: object) -> Value:
        """A C-contiguous numpy array as a value."""

class Model:
    """A finished ONNX model."""

    def save(self, session: Session, path: str | os.PathLike, external_threshold: int, inline_limit: int, source_locations: bool) -> int:
        """Writes the model; returns the number of bytes."""

    def to_bytes(self, source_locations: bool) -> bytes:
        """The model as one protobuf message."""

    def text(self) -> str:
        """The model in ONNX's text syntax."""

    def stats(self) -> dict[str, Any]:
        """Counts of nodes, ops, parameters and bytes."""

    def interface(self) -> dict[str, Any]:
        """Names and types of the "inputs" and "outputs"."""

    @property
    def case_header(self) -> str:
        """The first lines of a case: the options of the conversion."""

    @property
    def custom_ops(self) -> list[tuple[str, str, str, int]]:
        """
        What became nodes of the domain jaxport.custom: primitive, reason, source and uses of each.
        """

    @property
    def requires(self) -> str:
        """The oldest runtime that was kept in mind."""

    @property
    def precision(self) -> dict[str, int]:
        """Counts of nodes and parameters of a model in half precision."""

    @property
    def stage_times(self) -> dict[str, float]:
        """Seconds spent in each stage of the compiler."""

    @property
    def findings(self) -> list[tuple[str, str, str]]:
        """
        What was raised and what nearly was: rule, reason (empty: raised) and source of each.
        """

def compile(session: Session, module: Module, choices: dict, lowerings: dict) -> Model:
    """
    Compiles a program to ONNX with choices by the names of to_onnx; other Python threads run meanwhile.
    """

def explore(module: Module, choices: dict, lowerings: dict) -> str:
    """What the explorer page shows of such a conversion, as JSON."""

def newest_opset(target: str) -> int:
    """The newest opset that a target runs."""

def kernel_table() -> str:
    """The version of ONNX Runtime whose kernels the compiler knows."""

def knows(primitive: str) -> bool:
    """
    Whether the compiler has a translation or, at some opset, a lowering for a primitive.
    """

def calls() -> list[str]:
    """The primitives that only call a nested jaxpr."""

def parameters(primitive: str) -> str | None:
    """
    The parameters that a primitive of JAX may have, separated by blanks; None for others.
    """

def meaningless_parameters() -> list[str]:
    """
    Parameters of any primitive that cannot change the numbers of a result on one device.
    """

def unfulfilled(model: bytes | str | os.PathLike, expectation: str) -> str:
    """
    What a model does not fulfil of an expectation in JSON, as text; empty when all holds.
    """

def check_expectation(expectation: str) -> None:
    """Raises when an expectation in JSON cannot be used."""

def specification(model: bytes | str | os.PathLike) -> str:
    """The call of expect_graph that a model fulfils."""

def explore_model(model: bytes | str | os.PathLike) -> str:
    """What the explorer page shows of a model, as JSON."""

def optimize(model: bytes | str | os.PathLike) -> bytes:
    """A smaller model with the same inputs, outputs and results, as bytes."""

def side_by_side(lhs: bytes | str | os.PathLike, rhs: bytes | str | os.PathLike) -> list[tuple[str, str, str]]:
    """What two models say about themselves: what, left, right."""

def default_choices() -> dict:
    """
    What a user chooses for a conversion, by the names of to_onnx, as it is by default.
    """

def run_command(arguments: Sequence[str], functions: dict) -> int:
    """
    The program jaxport with what only Python can do; returns the exit code.
    """

def render_error(code: str, message: str, source: str, equation: str, notes: Sequence[str], help: str) -> str:
    """The text of an error."""
