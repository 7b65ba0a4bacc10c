# SPDX-License-Identifier: Apache-2.0
"""What to do about errors of JAX that concern shapes: the way out, in the words of to_onnx."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

OTHERWISE = "the error of JAX above has all details"


@dataclasses.dataclass(frozen=True)
class Advice:
    """`text` for an error whose first line matches `pattern`, with what its groups say."""

    pattern: re.Pattern[str]
    text: str | Callable[[re.Match[str]], str]


# A comparison that holds for all sizes when its constraint does: "B > 4" for "B >= 5".
_HOLDS = {"<": "<= {} - 1", "<=": "<= {}", ">": ">= {} + 1", ">=": ">= {}", "==": "== {}"}


def _constraint(match: re.Match[str]) -> str:
    left, operator, right = match.group("left", "operator", "right")
    fact = _HOLDS.get(operator, ">= {}").format(right)
    if right.isdigit():  # "5" reads better than "4 + 1"
        offset = {"<": -1, ">": 1}.get(operator, 0)
        fact = f"{fact[:2]} {int(right) + offset}"
    return (
        f"tell JAX the answer: make the size with jax.export.symbolic_shape(..., "
        f'constraints=["{left} {fact}"]), or give the size as a number'
    )


ADVICE = (
    Advice(
        re.compile(
            r"comparison '(?P<left>.+)' (?P<operator>[<>=]+) '(?P<right>.+)' is inconclusive"
        ),
        _constraint,
    ),
    Advice(
        re.compile(r"Cannot divide evenly"),
        "name the size so that it divides, such as '4*B', or give it as a number",
    ),
    Advice(
        re.compile(r"boolean indices must be concrete|^Abstract tracer value|concrete values"),
        "a shape that depends on the values of an argument cannot be converted: give size= to "
        "nonzero, unique and the like, use jnp.where in place of a boolean index, or make the "
        "number a constant of the function",
    ),
    Advice(
        re.compile(r"_DimExpr|requires a constant|a sequence of integers"),
        "a symbolic size stands where a number is needed: use jax.numpy or jax.lax here "
        "(jnp.arange, lax.fori_loop), or give the size as a number",
    ),
    Advice(
        re.compile(r"^Cannot mutate .* from a different trace level"),
        "the function calls a module that changes its own state: give the module itself, or a "
        "method of it, to to_onnx",
    ),
    Advice(
        re.compile(r"non-None PRNGKey|needs PRNG for|requires a key when running"),
        "the module draws random numbers: give it a key, (transformed, params, key) for Haiku and "
        "(module, variables, {name: key}) for Linen, or switch it to inference",
    ),
    Advice(
        re.compile(r'from collection "params" in .* but the collection is empty'),
        "the variables of (module, variables) are all that module.init gives: {'params': …}",
    ),
    Advice(
        re.compile(r"incompatible shapes for broadcasting: .*[A-Za-z_]"),
        "sizes that are always equal need the same name in the inputs",
    ),
)


def advice_for(message: str) -> str:
    """The help for an error of JAX, by the first line of its message."""
    for advice in ADVICE:
        if match := advice.pattern.search(message):
            return advice.text if isinstance(advice.text, str) else advice.text(match)
    return OTHERWISE
