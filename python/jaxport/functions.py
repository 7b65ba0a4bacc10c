# SPDX-License-Identifier: Apache-2.0
"""jaxport.onnx_function: calls that become functions of the model.

While a conversion traces, a marked call goes through jax.jit under a name that is the mark. The
equation of that call keeps its name under vmap, grad and scan, and the compiler makes a function of
it (front::FunctionMark). At all other times a marked function is what it was.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast, overload

import jax

_Target = TypeVar("_Target", bound=Callable[..., Any])

DEFAULT_NAMESPACE = "custom"
_ATTRIBUTE = "__onnx_function__"
_marks: list[Mark] = []  # all that were ever made


@dataclasses.dataclass(frozen=True)
class Mark:
    """What onnx_function was told about its target."""

    namespace: str
    name: str
    unique: bool

    @property
    def text(self) -> str:
        shares = ":shares" if self.unique else ""
        return f"onnx_function:{self.namespace}:{self.name}{shares}"


@overload
def onnx_function(
    target: None = None,
    *,
    unique: bool = False,
    namespace: str | None = None,
    name: str | None = None,
    type: str | None = None,
) -> Callable[[_Target], _Target]: ...


@overload
def onnx_function(
    target: _Target,
    *,
    unique: bool = False,
    namespace: str | None = None,
    name: str | None = None,
    type: str | None = None,
) -> _Target: ...


def onnx_function(
    target: Any = None,
    *,
    unique: bool = False,
    namespace: str | None = None,
    name: str | None = None,
    type: str | None = None,
) -> Any:
    """Marks a function, a method or a class: its calls become ONNX functions of the model.

    Of a class the calls of its instances are meant; the class may be a module of Flax NNX, Linen or
    Equinox, or any other with __call__. Nothing changes outside of conversions.

    Args:
        target: what to mark; left out where the decorator is called with options.
        unique: let calls that differ in nothing but their weights share one function, which has the
            weights as inputs. By default only calls with the same weights share one.
        namespace: the domain of the function.
        name: the name of the function; by default that of the target.
        type: the same as name, and stronger.

    Raises:
        ValueError: when the target is marked already under another namespace or name.
    """

    def decorate(given: Any) -> Any:
        mark = _mark_for(given, unique, namespace, type or name)
        return _marked_class(given, mark) if inspect.isclass(given) else _marked(given, mark)

    if target is None:
        return decorate
    if not callable(target):
        raise TypeError(f"onnx_function marks functions and classes, not {target!r}")
    return decorate(target)


def _mark_for(target: Any, unique: bool, namespace: str | None, name: str | None) -> Mark:
    earlier: Mark | None = vars(target).get(_ATTRIBUTE) if hasattr(target, "__dict__") else None
    chosen = name or getattr(target, "__name__", target.__class__.__name__)
    mark = Mark(_domain(namespace), re.sub(r"\W", "_", chosen, flags=re.ASCII), unique)
    if earlier is None:
        return mark
    if mark.namespace != earlier.namespace or (name and mark.name != earlier.name):
        raise ValueError(
            f"{earlier.name} is marked already as {earlier.namespace}.{earlier.name}, which is not "
            f"{mark.namespace}.{mark.name}"
        )
    return dataclasses.replace(earlier, unique=unique or earlier.unique)


def _domain(namespace: str | None) -> str:
    parts = [re.sub(r"\W", "_", part, flags=re.ASCII) for part in (namespace or "").split(".")]
    domain = ".".join(part for part in parts if part) or DEFAULT_NAMESPACE
    if domain == "ai.onnx":
        raise ValueError("the namespace 'ai.onnx' is that of ONNX's own operators")
    return domain


def _marked_class(cls: Any, mark: Mark) -> Any:
    if not any("__call__" in vars(base) for base in cls.__mro__):
        raise TypeError(f"onnx_function: instances of {cls.__name__} cannot be called")
    cls.__call__ = _marked(cls.__call__, mark)
    setattr(cls, _ATTRIBUTE, mark)
    return cls


def _marked(fn: Callable[..., Any], mark: Mark) -> Callable[..., Any]:
    fn = getattr(fn, "__wrapped__", fn) if hasattr(fn, _ATTRIBUTE) else fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _tracing.value:
            return fn(*args, **kwargs)
        return _called(fn, mark.text, args, kwargs)

    setattr(call, _ATTRIBUTE, mark)
    _marks.append(mark)
    return call


# --- while a conversion traces


class _Context:
    """What jax.make_user_context gives, for versions of JAX before it.

    A jitted function that was traced before the conversion hides the marks inside of it there.
    """

    def __init__(self, value: bool) -> None:
        self._value = contextvars.ContextVar("tracing", default=value)

    @property
    def value(self) -> bool:
        return self._value.get()

    @contextlib.contextmanager
    def __call__(self, value: bool) -> Iterator[None]:
        token = self._value.set(value)
        try:
            yield
        finally:
            self._value.reset(token)


# Part of the key of JAX's caches: what was traced before without marks is traced again.
_tracing: Any = getattr(jax, "make_user_context", _Context)(False)


def tracing() -> contextlib.AbstractContextManager[None]:
    """Marked calls become functions inside of this context. JAX's caches stay as they are if there
    are no marks."""
    if not _marks:
        return contextlib.nullcontext()
    return cast(contextlib.AbstractContextManager[None], _tracing(True))


def _called(fn: Callable[..., Any], mark: str, args: Any, kwargs: Any) -> Any:
    """fn(*args, **kwargs) as one call of a jitted function whose name is the mark."""
    linen = sys.modules.get("flax.linen")
    if linen is not None and args and isinstance(args[0], linen.Module):
        parts = _Parts((args[1:], kwargs))

        def inside_linen(module: Any, arrays: list[Any]) -> Any:
            rest, named = parts.joined(arrays)
            return results.split(fn(module, *rest, **named))

        results = _Results()
        inside_linen.__name__ = mark
        return results.joined(linen.jit(inside_linen)(args[0], parts.arrays))
    parts, modules, results = _Parts((args, kwargs)), _Modules((args, kwargs)), _Results()

    def inside(state: Any, arrays: list[Any]) -> Any:
        copies = modules.copies(state)
        given, named = parts.joined(arrays, copies)
        found = results.split(fn(*given, **named))
        return found, modules.changes(copies)

    inside.__name__ = mark
    found, changes = jax.jit(inside)(modules.state, parts.arrays)
    modules.change(changes)
    return results.joined(found)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array)


def _is_nnx(leaf: Any) -> bool:
    nnx = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(leaf, nnx.Module | nnx.Variable)


class _Parts:
    """The arrays of a pytree; all else in it, such as flags and functions, is closed over."""

    def __init__(self, tree: Any) -> None:
        self._leaves, self._tree = jax.tree.flatten(tree, is_leaf=_is_nnx)
        self.arrays = [leaf for leaf in self._leaves if _is_array(leaf)]

    def joined(self, arrays: Sequence[Any], modules: Sequence[Any] = ()) -> Any:
        """The tree with other arrays and other modules of Flax NNX in it."""
        rest, copies = iter(arrays), iter(modules)
        leaves = [
            next(rest) if _is_array(leaf) else next(copies) if _is_nnx(leaf) else leaf
            for leaf in self._leaves
        ]
        return jax.tree.unflatten(self._tree, leaves)


class _Results:
    """What a function returns: arrays as the results of the call, all else as it was traced."""

    def split(self, tree: Any) -> list[Any]:
        self._parts = _Parts(tree)
        return self._parts.arrays

    def joined(self, arrays: Sequence[Any]) -> Any:
        return self._parts.joined(arrays)


class _Modules:
    """Modules of Flax NNX among the arguments. Their state may change in the trace that made it.

    So the call gets copies that are made inside of its trace, and returns what it changed in them.
    """

    def __init__(self, tree: Any) -> None:
        leaves = jax.tree.leaves(tree, is_leaf=_is_nnx)
        self._modules = tuple(leaf for leaf in leaves if _is_nnx(leaf))
        self.state: Any = None
        if self._modules:
            self._nnx: Any = sys.modules["flax.nnx"]
            self._graph, self.state = self._nnx.split(self._modules)

    def copies(self, state: Any) -> Sequence[Any]:
        if not self._modules:
            return ()
        self._given = jax.tree.leaves(state)
        copies: Sequence[Any] = self._nnx.merge(self._graph, state)
        return copies

    def changes(self, copies: Sequence[Any]) -> list[Any]:
        if not copies:
            return []
        leaves, self._state_tree = jax.tree.flatten(self._nnx.state(copies))
        if len(leaves) != len(self._given):
            raise NotImplementedError("an onnx_function adds variables to a module of Flax NNX")
        self._changed = [i for i, new in enumerate(leaves) if new is not self._given[i]]
        return [leaves[i] for i in self._changed]

    def change(self, changes: Sequence[Any]) -> None:
        if not changes:
            return
        leaves = jax.tree.leaves(self.state)
        for i, value in zip(self._changed, changes, strict=True):
            leaves[i] = value
        self._nnx.update(self._modules, jax.tree.unflatten(self._state_tree, leaves))
