"""The state variables of models."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import cast

import numpy as np

from irrun.compat.openvino._errors import Covered
from irrun.compat.openvino._tensors import Tensor, tensor_of
from irrun.inference.propagate import declared
from irrun.running.executor import Executable

__all__ = ["VariableState", "has_variables", "variable_states"]


class VariableState(Covered):
    """A state variable of a request."""

    def __init__(self, executable: Executable, name: str, initial: np.ndarray) -> None:
        self._values = cast("MutableMapping[str, np.ndarray]", executable.state)
        self._name, self._initial = name, initial

    name = property(lambda self: self._name)

    @property
    def state(self) -> Tensor:
        return tensor_of(self._values.get(self._name, self._initial))

    @state.setter
    def state(self, tensor: Tensor) -> None:
        self._values[self._name] = np.array(tensor._array())

    def reset(self) -> None:
        self._values.pop(self._name, None)

    def __repr__(self) -> str:
        return "<VariableState>"


def has_variables(executable: Executable) -> bool:
    """Return whether a model has state variables."""
    return any("variables" in step.needed for step in executable.plan.steps)


def variable_states(executable: Executable) -> list[VariableState]:
    """Return the variables of a model, with their initial values, or zeros if these are not constant."""
    initial: dict[str, np.ndarray] = {}
    model, plan = executable.model, executable.plan
    slots = {output: slot for slot, output in enumerate(plan.values)}
    for layer in map(model.layers.__getitem__, model.order):
        name = layer.attributes.get("variable_id")
        if name is None:
            continue
        value = plan.values.get((layer.id, 0)) or declared(layer)[0]
        feed = next(iter(model.feeds[layer.id]), None)
        first = None if feed is None else plan.constants.get(slots[feed])
        if first is None:
            first = np.zeros([d.lo for d in value.shape.dims or ()], value.type.dtype)
        initial.setdefault(name, first)
    return [VariableState(executable, name, first) for name, first in initial.items()]
