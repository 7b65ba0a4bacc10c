# SPDX-License-Identifier: Apache-2.0
"""Everything that depends on JAX's inner objects and on how they differ between its versions.

The importer in C++ walks a jaxpr by itself and asks a Reader for what it cannot know: what kind of
thing a type is, how a parameter that changed between versions is spelled today, where a traceback
points to.
"""

from __future__ import annotations

import contextlib
import enum
import linecache
import os
import re
import site
import sys
import sysconfig
import traceback as traceback_module
import types
from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import jax.export
import jax.extend.core
import jax.extend.random
import numpy as np

from . import _core, _jax_callbacks, decompose
from .errors import ConversionError, first_line

# The newest version that `make test-newest` runs on, as far as jaxprs can tell versions apart.
NEWEST = (0, 11)

IGNORED = frozenset(_core.meaningless_parameters())
# jax 0.10: mul gained out_dtype, which nobody sets.
IGNORED_WHEN_NONE = frozenset({"out_dtype"})

# Calls of a nested jaxpr that mean the same have one name here.
RENAMED = {"pjit": "jit", "closed_call": "jit", "core_call": "jit", "eval_jaxpr": "jit"}

# A random key is its data (uint32, with a last axis of words), so that these change nothing.
ALIASES = frozenset({"random_clone", "random_unwrap", "random_wrap"})

# What takes packed elements (random keys, complex numbers) as any other array: what only calls
# nested jaxprs, and the transform that ONNX has for packed numbers.
TAKES_PACKED = frozenset(
    {
        "fft",
        *("cond", "custom_linear_solve", "scan", "shard_map", "while"),
        *_core.calls(),
    }
)


def scan_params(eqn: Any) -> dict[str, Any]:
    # jax 0.11: num_consts and num_carry became trees that say which operands are which.
    params = dict(eqn.params)
    if "ft_in" in params:
        consts, carry, _ = params.pop("ft_in").unpack()
        del params["ft_out"]
        params["num_consts"], params["num_carry"] = len(consts), len(carry)
    return params


def _top_k_params(eqn: Any) -> dict[str, Any]:
    # jax 0.10: top_k gained axis; jax 0.11: is_stable, which only asks for more of the order.
    params = {"axis": len(eqn.invars[0].aval.shape) - 1, **eqn.params}
    params.pop("is_stable", None)
    return params


def _jit_params(eqn: Any) -> dict[str, Any]:
    # closed_call and core_call name their jaxpr call_jaxpr.
    params = dict(eqn.params)
    if "call_jaxpr" in params:
        params["jaxpr"] = params.pop("call_jaxpr")
    params.setdefault("name", "")
    return params


def _composite_params(eqn: Any) -> dict[str, Any]:
    # jax 0.11: the jaxpr is named call_jaxpr. The rest says what a backend may put in its place.
    params = eqn.params
    return {"jaxpr": params["call_jaxpr"] if "call_jaxpr" in params else params["jaxpr"]}


def _shard_map_params(eqn: Any) -> dict[str, Any]:
    return {"jaxpr": eqn.params["jaxpr"], "mesh_size": eqn.params["mesh"].size}


def _select_params(eqn: Any) -> dict[str, Any]:
    # A primitive as a parameter, "ge" or "le": its name says all.
    return {**eqn.params, "select_prim": str(eqn.params["select_prim"])}


REWRITES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "composite": _composite_params,
    "jit": _jit_params,
    "scan": scan_params,
    "select_and_gather_add": _select_params,
    "select_and_scatter_add": _select_params,
    "shard_map": _shard_map_params,
    "top_k": _top_k_params,
}


def _kinds() -> tuple[tuple[str, tuple[type, ...]], ...]:
    """Kinds of objects with their classes; the first that fits a type wins."""
    (symbol,) = jax.export.symbolic_shape("n")
    core = jax.extend.core
    return (
        ("none", (type(None),)),
        ("bool", (bool, np.bool_)),
        ("enum", (enum.Enum,)),
        ("int", (int, np.integer)),
        ("float", (float, np.floating)),
        ("complex", (complex,)),
        ("string", (str,)),
        ("dim", (type(symbol),)),
        ("dtype", (np.dtype, type(jax.numpy.float32))),
        ("key_impl", (type(jax.extend.random.threefry_prng_impl),)),
        ("literal", (core.Literal,)),
        ("variable", (core.Var,)),
        ("shaped", (jax.core.ShapedArray,)),
        ("jaxpr", (core.ClosedJaxpr, core.Jaxpr)),
        ("array", (np.ndarray, jax.Array)),
    )


class Reader:
    """What the importer asks about JAX's objects; one for each conversion."""

    ignored = IGNORED
    ignored_when_none = IGNORED_WHEN_NONE
    renamed = RENAMED
    aliases = ALIASES
    takes_packed = TAKES_PACKED
    decomposed = decompose.Names()

    def __init__(self) -> None:
        self._kinds = _kinds()
        self._decompositions: Any = None  # a decompose.trace.Tracer, made when it is needed
        self._problems: dict[str, ConversionError] = {}  # by message
        self.left_out: list[tuple[str, str, str]] = []  # (what, why, source)
        self.rewrites = {**REWRITES, "cond": self._cond_params}
        self._files: dict[str, tuple[str, str]] = {}
        self._paths_by_name: dict[str, str] = {}

    def kind(self, cls: type) -> str:
        for name, classes in self._kinds:
            if issubclass(cls, classes):
                return name
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            return "record"
        return "list" if issubclass(cls, tuple | list) else "opaque"

    def parts(self, jaxpr: Any) -> tuple[str, Any, Any, Any, Any, Any]:
        """(name, constvars, consts, invars, eqns, outvars) of a closed or open jaxpr."""
        # jax 0.12: closed and open jaxprs are one class, and an open one has no consts.
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        consts = getattr(jaxpr, "consts", [])
        constvars, invars = inner.constvars, inner.invars
        if len(constvars) != len(consts):
            constvars, consts, invars = [], [], [*constvars, *invars]
        name = inner.debug_info.func_name if inner.debug_info else ""
        return name, constvars, consts, invars, inner.eqns, inner.outvars

    def dtype_name(self, dtype: Any) -> str:
        if is_key(dtype):
            return "key"
        if dtype == jax.dtypes.float0:  # the type of gradients of integers: only zeros
            return "bool"
        return str(np.dtype(dtype).name)

    def dim_text(self, dim: Any) -> str:
        return str(dim)

    def array(self, value: Any, dtype: Any) -> np.ndarray[Any, Any]:
        """A C-contiguous numpy array of `dtype`: a view of the buffer wherever one exists."""
        if is_key(dtype):
            return host_array(value)
        if dtype == jax.dtypes.float0:
            return np.zeros(np.shape(value), bool)
        # Without 64-bit types, JAX keeps a captured float64 array and narrows it when it runs.
        return host_array(np.asarray(np.asarray(value), dtype=np.dtype(dtype), order="C"))

    def scalar(self, value: Any) -> bool | int | float:
        """The value of a literal: a Python number, or a numpy or JAX scalar."""
        if getattr(value, "dtype", None) == jax.dtypes.float0:
            return False
        return value.item() if hasattr(value, "item") else value  # type: ignore[no-any-return]

    def packed(self, dtype: Any) -> tuple[str, tuple[int, ...]] | None:
        """(dtype, sizes) of what one element consists of; None for plain numbers.

        A threefry key is two words: ("uint32", (2,)); a complex number its two parts.
        """
        if is_key(dtype):
            return "uint32", tuple(key_impl(dtype).key_shape)
        if np.issubdtype(dtype, np.complexfloating):
            return np.zeros((), dtype).real.dtype.name, (2,)
        return None

    def key_impl_name(self, impl: Any) -> str:
        return str(impl.name)

    def scope_text(self, name_stack: Any) -> str:
        return str(name_stack)

    def source_frame(self, traceback: Any) -> tuple[str, int, str, str]:
        """(file, line, function, library) of the innermost frame of the user's own code.

        `library` is the innermost frame of an installed package that the user's frame called.
        """
        library: tuple[str, int, str] | None = None
        for frame in traceback.frames if traceback is not None else ():
            owner, name = self._file(frame.file_name)
            here = (name, frame.line_num, frame.function_name)
            if owner == "user":
                return *here, "{}:{} in {}".format(*library) if library else ""
            if owner == "library" and library is None:
                library = here
        return (*library, "") if library else ("", 0, "", "")

    def decomposition(self, eqn: Any) -> Any:
        """The closed jaxpr that stands for an equation, None when the equation stays.

        (code, message, help) of an error when there is none; the compiler says where, and what else
        is missing.
        """
        if self._decompositions is None:
            from .decompose.trace import Tracer

            self._decompositions = Tracer()
        name = RENAMED.get(eqn.primitive.name, eqn.primitive.name)
        try:
            return self._decompositions.jaxpr(eqn, name)
        except ConversionError as error:
            self._problems.setdefault(error.message, error)
            return error.code, error.message, error.help

    def cause_of(self, error: ConversionError) -> BaseException | None:
        """The exception of JAX or of a decomposition behind an error of the compiler."""
        problem = self._problems.get(error.message)
        return problem.__cause__ if problem else None

    def leave_out(self, eqn: Any) -> None:
        """Notes an equation without results, which the model does without."""
        for name in _jax_callbacks.effects_of(eqn):
            self.left_out.append((name, "a model has no effects", self._source_of(eqn)))

    def _cond_params(self, eqn: Any) -> dict[str, Any]:
        branches = _jax_callbacks.branches_that_return(eqn.params["branches"])
        if branches != tuple(eqn.params["branches"]):
            why = "a branch that only raises an error"
            self.left_out.append(("cond", why, self._source_of(eqn)))
        return {**eqn.params, "branches": branches}

    def why_not_defined(self, primitive: str) -> str:
        """Why the definition of a primitive of another library cannot be used; "" if unknown."""
        return "" if self._decompositions is None else self._decompositions.why_not(primitive)

    def _source_of(self, eqn: Any) -> str:
        file, line, function, _ = self.source_frame(eqn.source_info.traceback)
        return f"{file}:{line} in {function}" if file else ""

    def source_line(self, source: str) -> str:
        """The text of the line that "model.py:42 in f" names, or ""."""
        file, _, rest = source.partition(":")
        line = rest.split(" ", 1)[0]
        path = self._paths_by_name.get(file)
        if path is None or not line.isdigit():
            return ""
        return str(linecache.getline(path, int(line))).strip()

    def source_lines(self, file: str) -> list[str]:
        """The lines of a file by its short name, [] when it is not known."""
        return linecache.getlines(self._paths_by_name.get(file, ""))

    def _file(self, path: str) -> tuple[str, str]:
        if path not in self._files:
            owner = _owner(path)
            name = _short_name(path)
            self._files[path] = (owner, name)
            self._paths_by_name.setdefault(name, path)
        return self._files[path]


def _package_folder(module: Any) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(str(module.__file__))), "")


_INTERNAL = (
    _package_folder(jax),
    os.path.dirname(os.path.abspath(__file__)) + os.sep,
    "<frozen",
)
_INSTALLED = tuple(
    {
        os.path.abspath(path) + os.sep
        for path in [
            sysconfig.get_path("purelib"),
            sysconfig.get_path("platlib"),
            *site.getsitepackages(),
            site.getusersitepackages(),
        ]
    }
)
# Folders of packages that this interpreter was told about by PYTHONPATH or a .pth file.
_PACKAGES = re.compile(r"[\\/](site|dist)-packages[\\/]")
_STANDARD = os.path.abspath(sysconfig.get_path("stdlib")) + os.sep


def _owner(path: str) -> str:
    """Whose code a file is: "internal" (JAX, jaxport, Python), "library" or "user"."""
    if path.startswith(_INTERNAL):
        return "internal"
    if path.startswith(_INSTALLED) or _PACKAGES.search(path):
        return "library"
    return "internal" if path.startswith(_STANDARD) else "user"


def _short_name(path: str) -> str:
    """The path as an import would see it, so that no folder of this machine reaches a model."""
    if path.startswith("<"):
        return path
    roots = {os.path.abspath(root) + os.sep for root in sys.path} | set(_INSTALLED)
    fitting = [root for root in roots if path.startswith(root)]
    name = path[len(max(fitting, key=len)) :] if fitting else os.path.basename(path)
    return name.replace(os.sep, "/")


def is_user_file(path: str) -> bool:
    return _owner(path) == "user"


def innermost_user_line(traceback: types.TracebackType | None) -> tuple[str, str]:
    """("model.py:42 in f", the text of that line) of an exception; ("", "") when unknown."""
    frames = traceback_module.extract_tb(traceback)
    for frame, code in zip(reversed(frames), reversed(_codes(traceback)), strict=True):
        if is_user_file(frame.filename):
            where = f"{_short_name(frame.filename)}:{frame.lineno} in {code.co_qualname}"
            return where, frame.line or ""
    return "", ""


def _codes(traceback: types.TracebackType | None) -> list[types.CodeType]:
    codes = []
    while traceback is not None:
        codes.append(traceback.tb_frame.f_code)
        traceback = traceback.tb_next
    return codes


def constraints_of(scope: Any) -> list[str]:
    """The constraints a user gave to jax.export.symbolic_shape, as text."""
    return [constraint.debug_str for constraint in getattr(scope, "_explicit_constraints", ())]


def dim_value(dim: Any, size_of: Callable[[str], int]) -> int:
    """The value of a size when each symbol has the size that size_of gives it."""
    if not is_symbolic(dim):
        return int(dim)
    names = sorted(dim._get_vars())  # the public API has no names of symbols
    return int(dim._evaluate({name: size_of(name) for name in names}))


def is_key(dtype: Any) -> bool:
    return bool(jax.numpy.issubdtype(dtype, jax.dtypes.prng_key))


def host_array(value: Any) -> np.ndarray[Any, Any]:
    """An array as a model takes and gives it: random keys as words, complex numbers as parts."""
    is_keys = is_key(getattr(value, "dtype", np.float32))
    array = np.asarray(jax.random.key_data(value) if is_keys else value)
    if not np.iscomplexobj(array):
        return array
    return np.ascontiguousarray(array).reshape(*array.shape, 1).view(array.real.dtype)


def key_impl(dtype: Any) -> Any:
    """The algorithm behind a dtype of keys: its functions work on words (uint32)."""
    return dtype._impl


def context_of(eqn: Any) -> contextlib.AbstractContextManager[Any]:
    """The settings of JAX that an equation was traced with, such as jax_threefry_partitionable."""
    return cast(contextlib.AbstractContextManager[Any], eqn.ctx.manager)


def bind(eqn: Any, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results of an equation, computed or traced, with other operands and parameters."""
    with context_of(eqn):
        given = eqn.primitive.get_bind_params(params)
        # jax 0.10: functions are parameters; before, they came apart and first.
        functions, given = given if isinstance(given, tuple) else ((), given)
        results = eqn.primitive.bind(*functions, *operands, **given)
    return list(results) if eqn.primitive.multiple_results else [results]


def private(primitive: str) -> Any:
    """JAX's own Python function for a primitive; see _jax_private."""
    from ._jax_private import private

    return private(primitive)


def definition(eqn: Any) -> Callable[..., Any] | None:
    """The function that the library of an equation's primitive computes it with; None if unknown.

    See _jax_private.
    """
    from ._jax_private import definition

    return definition(eqn.primitive, bool(eqn.effects))


def is_symbolic(dim: Any) -> bool:
    return hasattr(dim, "scope") and not isinstance(dim, int)


def double_precision(enabled: bool) -> contextlib.AbstractContextManager[Any]:
    """64-bit types inside the context only; JAX's global setting stays as it is."""
    if not enabled:
        return contextlib.nullcontext()
    if hasattr(jax, "enable_x64"):
        return cast(contextlib.AbstractContextManager[Any], jax.enable_x64(True))
    from jax import experimental  # jax 0.7

    return cast(contextlib.AbstractContextManager[Any], vars(experimental)["enable_x64"]())


def is_newer_than_tested() -> bool:
    return bool(jax.__version_info__[:2] > NEWEST)


def _leaked(error: Exception, jaxpr: Any) -> ConversionError:
    """A constant of the jaxpr is a value of a trace that is over: JAX cannot compile it either."""
    try:
        jax.jit(jax.extend.core.jaxpr_as_fun(jaxpr)).lower(*jaxpr.in_avals)
    except Exception as its_own:
        error = its_own
    what = f"{type(error).__name__}: {first_line(error)}"
    return ConversionError(
        "E074",
        f"JAX traces the function, but cannot compile it: {what}",
        help="a value of another trace is a constant of this one; jax.checking_leaks() says where",
    )


def explained(error: ConversionError) -> ConversionError:
    """An error of the importer; that of an unknown parameter names the JAX that has it."""
    if error.code != "E031":
        return error
    known = ".".join(map(str, NEWEST))
    return error.with_note(f"traced with JAX {jax.__version__}; jaxport knows JAX 0.7 to {known}")


def unreadable(error: Exception, jaxpr: Any) -> ConversionError:
    """What to raise when JAX's objects are not what this module takes them for."""
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return _leaked(error, jaxpr)
    what = f"{type(error).__name__}: {first_line(error)}"
    if is_newer_than_tested():
        known = ".".join(map(str, NEWEST))
        return ConversionError(
            "E080",
            f"the jaxpr of JAX {jax.__version__} cannot be read: {what}",
            notes=[f"this version of jaxport knows JAX up to {known}"],
            help=f'use "jax<{NEWEST[0]}.{NEWEST[1] + 1}" or a newer jaxport',
        )
    return ConversionError(
        "BUG",
        f"the jaxpr of JAX {jax.__version__} cannot be read: {what}",
        help="add the program that was converted to your report",
    )
