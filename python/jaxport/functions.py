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
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast, overload

import jax

_Target = TypeVar("_Target", bound=Callable[..., Any])

DEFAULT_NAMESPACE = "custom"
_ATTRIBUTE = "__onnx_function__"
_marks: list[Mark] = []  # all that were ever made


def _is_change_of_state(error: Exception) -> bool:
    """Whether tracing failed because a module of Flax NNX changed its own state."""
    errors = sys.modules.get("flax.errors")
    return errors is not None and isinstance(error, errors.TraceContextError)


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
    """Marks a function, a method, a class or a module: calls become ONNX functions of the model.

    Of a class the calls of its instances are meant; the class may be a module of Flax NNX, Linen or
    Equinox, or any other with __call__. A module that is marked stays the module that it is.
    Nothing changes outside of conversions.

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
        if inspect.isclass(given):
            return _marked_class(given, mark)
        if inspect.ismethod(given):
            return types.MethodType(_marked(given.__func__, mark), given.__self__)
        return _marked_module(given, mark) if _is_module(given) else _marked(given, mark)

    if target is None:
        return decorate
    if not callable(target):
        raise TypeError(f"onnx_function marks functions and classes, not {target!r}")
    return decorate(target)


def _mark_for(target: Any, unique: bool, namespace: str | None, name: str | None) -> Mark:
    marked = type(target) if _is_module(target) else target
    earlier: Mark | None = vars(marked).get(_ATTRIBUTE) if hasattr(marked, "__dict__") else None
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
    # jax2onnx accepts classes whose instances are never called, too.
    if any("__call__" in vars(base) for base in cls.__mro__):
        cls.__call__ = _marked(cls.__call__, mark)
    setattr(cls, _ATTRIBUTE, mark)
    return cls


def _marked_module(module: Any, mark: Mark) -> Any:
    """The module itself, of a class of its own: a function in its place would hide its weights and
    its state from the module that holds it."""
    cls: Any = type(module)
    metaclass: Any = type(cls)
    own = metaclass(cls.__name__, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})
    own.__qualname__ = cls.__qualname__
    object.__setattr__(module, "__class__", _marked_class(own, mark))  # modules may be frozen
    return module


def _is_module(target: Any) -> bool:
    """Whether this is an instance of a module of Flax NNX, Linen or Equinox."""
    kinds = [("flax.nnx", "Module"), ("flax.linen", "Module"), ("equinox", "Module")]
    modules = [(sys.modules.get(package), name) for package, name in kinds]
    return isinstance(target, tuple(getattr(found, name) for found, name in modules if found))


def _marked(fn: Callable[..., Any], mark: Mark) -> Callable[..., Any]:
    fn = getattr(fn, "__wrapped__", fn) if hasattr(fn, _ATTRIBUTE) else fn

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _tracing.value:
            return fn(*args, **kwargs)
        return _called(plain, mark.text, (*owner, *args), kwargs)

    plain, owner = _unbound(fn)
    setattr(call, _ATTRIBUTE, mark)
    _marks.append(mark)
    return call


def _unbound(fn: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function and its first arguments: an object that can be called is one."""
    return (fn, ()) if inspect.isroutine(fn) else (type(fn).__call__, (fn,))


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
        # Linen's own jit hands the variables of the module to what is inside.
        module, *rest = args
        return _through(
            lambda inside, given: linen.jit(inside)(module, given), fn, mark, rest, kwargs
        )
    try:
        return _through(lambda inside, given: jax.jit(inside)(given), fn, mark, args, kwargs)
    except Exception as error:
        if not _is_change_of_state(error):
            raise
    return _called_on_copies(fn, mark, args, kwargs)


def _through(jitted: Any, fn: Callable[..., Any], mark: str, args: Any, kwargs: Any) -> Any:
    """fn(*args, **kwargs) where jitted(inside, tracers) calls inside(*first, tracers).

    What it gives as `first` are further arguments of fn, before the others.
    """
    given, found = _Parts((args, kwargs)), []

    def inside(*operands: Any) -> Any:
        *first, tracers = operands
        rest, named = given.joined(tracers)
        found.append(_Parts(fn(*first, *rest, **named)))
        return found[-1].tracers

    inside.__name__ = mark
    results = jitted(inside, given.tracers)
    return found[-1].joined(results)


def _called_on_copies(fn: Callable[..., Any], mark: str, args: Any, kwargs: Any) -> Any:
    """The same for modules of Flax NNX that change their state, which only the trace that made it
    may do: the call gets copies that are made inside, and returns what it changed in them."""
    nnx: Any = sys.modules["flax.nnx"]
    modules = _Parts((args, kwargs)).modules
    if not modules:  # the function found the module by itself
        return fn(*args, **kwargs)
    graph, state = nnx.split(modules)
    arrays, tree = jax.tree.flatten(state)
    changed: list[int] = []

    def on_copies(given: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        copies = nnx.merge(graph, jax.tree.unflatten(tree, given))
        own_args, own_kwargs = _Parts((args, kwargs)).with_modules(copies)
        result = fn(*own_args, **own_kwargs)
        new = jax.tree.leaves(nnx.state(copies))
        changed[:] = [i for i, value in enumerate(new) if value is not given[i]]
        return result, [new[i] for i in changed]

    jitted = lambda inside, tracers: jax.jit(inside)(arrays, tracers)  # noqa: E731
    result, changes = _through(jitted, on_copies, mark, args, kwargs)
    for i, value in zip(changed, changes, strict=True):
        arrays[i] = value
    nnx.update(modules, jax.tree.unflatten(tree, arrays))
    return result


class _Parts:
    """The tracers and the modules of Flax NNX in a pytree.

    All else in it (weights, flags, functions) is closed over, so that a function sees it as it does
    without a mark.
    """

    def __init__(self, tree: Any) -> None:
        self._leaves, self._tree = jax.tree.flatten(tree, is_leaf=self._is_module)
        self.tracers = list(filter(self._is_tracer, self._leaves))
        self.modules = tuple(filter(self._is_module, self._leaves))

    def joined(self, tracers: Sequence[Any]) -> Any:
        """The tree with other tracers in it."""
        return self._replaced(self._is_tracer, tracers)

    def with_modules(self, modules: Sequence[Any]) -> Any:
        """The tree with other modules in it."""
        return self._replaced(self._is_module, modules)

    def _replaced(self, is_one: Callable[[Any], bool], others: Sequence[Any]) -> Any:
        rest = iter(others)
        leaves = [next(rest) if is_one(leaf) else leaf for leaf in self._leaves]
        return jax.tree.unflatten(self._tree, leaves)

    @staticmethod
    def _is_tracer(leaf: Any) -> bool:
        return isinstance(leaf, jax.core.Tracer)

    @staticmethod
    def _is_module(leaf: Any) -> bool:
        nnx = sys.modules.get("flax.nnx")
        return nnx is not None and isinstance(leaf, nnx.Module | nnx.Variable)
