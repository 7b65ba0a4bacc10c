# SPDX-License-Identifier: Apache-2.0
"""Models and layers of Keras 3 on the JAX backend, called for inference.

Variables are read and assigned in a StatelessScope, so that the user's model stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax

from ..errors import ConversionError
from ..names import distinct
from .program import Program, changed, has_no_variables, loaded


def program(fn: Any) -> Program | None:
    keras = loaded("keras")
    if keras is None or not isinstance(fn, keras.Layer):
        return None
    if keras.backend.backend() != "jax":
        raise ConversionError(
            "E087",
            f"the Keras model '{fn.name}' runs on {keras.backend.backend()}, not on JAX",
            help='set the variable KERAS_BACKEND to "jax" before Keras is imported',
        )
    if not fn.built:
        raise has_no_variables(
            f"the Keras model '{fn.name}'", "call it once, or build it with model.build(shape)"
        )
    is_graph = _is_graph(keras, fn)
    variables = _Variables(fn.non_trainable_variables)

    def call(
        given: Mapping[str, Any] | None, *arguments: Any, **keywords: Any
    ) -> tuple[Any, dict[str, Any]]:
        if is_graph and len(arguments) > 1:  # one entry for each input
            arguments = (keras.tree.pack_sequence_as(_structure(fn), list(arguments)),)
        values = {**variables.values, **(given or {})}
        mapping = [(variable, values[name]) for name, variable in variables.by_name.items()]
        with _watching(keras, mapping) as scope:
            result = fn(*arguments, **{"training": False, **keywords})
        variables.add(scope.assigned)
        after = {n: scope.get_current_value(v) for n, v in variables.by_name.items()}
        return result, changed(values, after)

    return Program(
        function=_takes_inputs if is_graph else fn.call,
        call=call,
        holders=(fn,),
        name=fn.name,
        state=variables.values,
        input_names=_input_names(keras, fn) if is_graph else None,
        output_names=_output_names(fn) if is_graph else None,
    )


class _Variables:
    """Variables by their paths, with the values they had when they were added.

    A stateful RNN assigns variables that no layer lists: they are added when they are seen.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        self.by_name: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.add(variables)

    def add(self, variables: Sequence[Any]) -> None:
        known = set(map(id, self.by_name.values()))
        for variable in variables:
            if id(variable) not in known:
                known.add(id(variable))
                (name,) = distinct([variable.path.replace("/", ".")], self.by_name)
                self.by_name[name], self.values[name] = variable, variable.value


def _watching(keras: Any, mapping: list[tuple[Any, Any]]) -> Any:
    """A StatelessScope that also remembers which variables are assigned."""

    class Watching(keras.StatelessScope):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(state_mapping=mapping)
            self.assigned: list[Any] = []

        def add_update(self, update: tuple[Any, Any]) -> None:
            self.assigned.append(update[0])
            super().add_update(update)

    return Watching()


def _is_graph(keras: Any, model: Any) -> bool:
    """Whether a model knows its inputs and outputs: a functional or a sequential one."""
    is_functional = isinstance(model, keras.Model) and hasattr(model, "output_names")
    return is_functional or isinstance(model, keras.Sequential)


def _takes_inputs(*inputs: Any) -> None:
    """The parameters of a graph: all its inputs, or one structure of them."""


def _structure(model: Any) -> Any:
    """The inputs as the user nested them."""
    return model.inputs if len(model.inputs) == 1 else model.input


def _input_names(keras: Any, model: Any) -> list[str]:
    names = keras.tree.map_structure(lambda tensor: tensor.name, _structure(model))
    return distinct(jax.tree.leaves(names))


def _output_names(model: Any) -> list[str] | None:
    """The names of the layers that give the outputs; a dict has names of its own."""
    if not hasattr(model, "output_names"):
        return [model.layers[-1].name]
    return None if isinstance(model.output, dict) else distinct(model.output_names)
