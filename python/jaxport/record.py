# SPDX-License-Identifier: Apache-2.0
"""What JAX records of a program: the jaxpr, and what becomes of state."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax

from . import _jax, functions
from ._jaxpr import is_variable, source_of, with_results
from .advice import advice_for
from .call import Call, Images
from .errors import ConversionError, first_line
from .frameworks import Program
from .inputs import Arguments, describe
from .names import function_name, parameter_names, path_text


@dataclasses.dataclass(frozen=True)
class Record:
    """A jaxpr and what its parameters and results are.

    Attributes:
        result: the result of the function, a pytree of shapes; the first results of the jaxpr.
        read: state that the last parameters of the jaxpr stand for, by name.
        written: state whose new values are the last results of the jaxpr.
        frozen: state that calls change, or draw random numbers with, and that is constant here.
    """

    jaxpr: Any
    result: Any
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()


def record(
    program: Program, arguments: Arguments, *, images: Images, exports_state: bool
) -> Record:
    """Traces a program with JAX. Raises ConversionError E073, E074 and E081."""
    try:
        found = (_with_state if exports_state else _frozen)(program, Call(arguments, images))
    except ConversionError:
        raise
    except Exception as error:
        raise _trace_error(program, arguments, error) from error
    if not jax.tree.leaves(found.result):
        raise ConversionError(
            "E081",
            "the function returns no array",
            help="return what the model is to compute; prints and other effects are left out",
        )
    return found


def bound(fn: Callable[..., Any], arguments: Arguments) -> Arguments:
    """The arguments with those by position that fn takes by position only.

    Raises ConversionError E070 when fn cannot be called with them.
    """
    if not callable(fn):
        raise ConversionError(
            "E070",
            f"fn is of type {type(fn).__name__}, which cannot be called",
            help="give a function, a module, a method, or a module with its variables: "
            "docs/modules.md",
        )
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # builtins without a signature: JAX finds out
        return arguments
    named = dict(arguments.named)
    positional = [
        named.pop(parameter.name)
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in named
    ]
    arguments = dataclasses.replace(
        arguments, positional=(*arguments.positional, *positional), named=named
    )
    try:
        signature.bind(*arguments.positional, **arguments.keywords)
    except TypeError as error:
        raise _no_fit(f"{function_name(fn)}{signature}", arguments, error) from None
    return arguments


def _no_fit(signature: str, arguments: Arguments, error: TypeError) -> ConversionError:
    count = len(arguments.positional) + len(arguments.named)
    params = ", ".join(arguments.params)
    also = f" and input_params {params}" if params else ""
    is_state = "'state'" in str(error)
    pair = "; a module of Equinox and its state are one pair, (module, state)" if is_state else ""
    return ConversionError(
        "E070",
        f"inputs has {count} entries{also}, which do not fit {signature}: {error}",
        help=f"give one entry for each argument that has no default value{pair}",
    )


def _frozen(program: Program, call: Call) -> Record:
    """State is constant; what calls change is traced all the same, to name it."""
    seen = _traced(program, call, None)
    jaxpr = with_results(seen.jaxpr, _results(seen)) if seen.written else seen.jaxpr
    constants = {id(const) for const in jaxpr.consts}
    keys = [name for name in sorted(program.random) if id(program.state[name]) in constants]
    return Record(jaxpr, seen.result, frozen=(*_changed(program, seen), *keys))


def _with_state(program: Program, call: Call) -> Record:
    """Traces twice where there is state that changes: which it is is known only afterwards."""
    first = _traced(program, call, {})
    changed = _changed(program, first)
    names = [name for name in program.state if name in changed or name in program.random]
    given = {name: program.state[name] for name in names}
    seen = _traced(program, call, given) if given else first
    jaxpr = with_results(seen.jaxpr, [*_results(seen), *(_new(seen)[name] for name in changed)])
    return _without_unread_keys(
        Record(jaxpr, seen.result, read=seen.read, written=tuple(changed)), program.random
    )


def _traced(program: Program, call: Call, given: Mapping[str, Any] | None) -> Record:
    """A call with the given state as parameters, and with all that may be new as results."""
    names = tuple(given or ())
    written: list[str] = []

    def run(arrays: list[Any], state: list[Any]) -> tuple[Any, list[Any]]:
        replaced = None if given is None else dict(zip(names, state, strict=True))
        positional, keywords = call.arguments(arrays)
        result, changes = program.call(replaced, *positional, **keywords)
        _check_result(result)
        written.extend(changes)
        return call.outputs(result), list(changes.values())

    state = list((given or {}).values())
    with functions.tracing():
        jaxpr, (result, _) = jax.make_jaxpr(run, return_shape=True)(call.inputs, state)
    return Record(jaxpr, result, names, tuple(written))


def _check_result(result: Any) -> None:
    """Raises ConversionError E081 for a result with something else than arrays and numbers."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(result)[0]:
        try:
            jax.typeof(leaf)
        except TypeError:
            place = f" at {path_text(path)}" if path else ""
            raise ConversionError(
                "E081",
                f"the function returns a {type(leaf).__name__}{place}, which is no array",
                help="return arrays, numbers and trees of them; "
                "jax.tree_util.register_dataclass makes a dataclass a tree",
            ) from None


def _results(record: Record) -> list[Any]:
    return list(record.jaxpr.jaxpr.outvars[: len(jax.tree.leaves(record.result))])


def _new(record: Record) -> dict[str, Any]:
    """The variables that hold the new values of state."""
    last = record.jaxpr.jaxpr.outvars[len(_results(record)) :]
    return dict(zip(record.written, last, strict=True))


def _changed(program: Program, record: Record) -> list[str]:
    """The state that a call gave new values, and did not just hand on."""
    constants = dict(zip(record.jaxpr.jaxpr.constvars, record.jaxpr.consts, strict=True))

    def is_handed_on(name: str, result: Any) -> bool:
        source = source_of(record.jaxpr, result)
        constant = constants.get(source) if is_variable(source) else None
        return constant is not None and constant is program.state.get(name)

    return [name for name, result in _new(record).items() if not is_handed_on(name, result)]


def _without_unread_keys(record: Record, random: frozenset[str]) -> Record:
    """Without the keys of random numbers that nobody draws."""
    inner = record.jaxpr.jaxpr
    used = {id(atom) for eqn in inner.eqns for atom in eqn.invars}
    count = len(inner.invars) - len(record.read)
    own, state = inner.invars[:count], zip(record.read, inner.invars[count:], strict=True)
    kept = [(name, v) for name, v in state if name not in random or id(v) in used]
    jaxpr = record.jaxpr.replace(jaxpr=inner.replace(invars=[*own, *(v for _, v in kept)]))
    return dataclasses.replace(record, jaxpr=jaxpr, read=tuple(name for name, _ in kept))


def _trace_error(program: Program, arguments: Arguments, error: Exception) -> ConversionError:
    """JAX's own error is the cause; this one says with which arguments fn was called."""
    names = parameter_names(program.function, len(arguments.positional))
    entries = {**dict(zip(names, arguments.positional, strict=True)), **arguments.keywords}
    called = ", ".join(f"{name}: {describe(value)}" for name, value in entries.items())
    source, line = _jax.innermost_user_line(error.__traceback__)
    message = first_line(error)
    return ConversionError(
        "E074",
        f"JAX cannot trace the function: {type(error).__name__}: {message}",
        source=source,
        notes=[f"called with: {called}"],
        help=advice_for(message),
    ).with_source_line(line)
