"""Strict runs: compare the element types and shapes that ports declare with those of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError, diagnostic
from irrun.model import Layer, Model, Port
from irrun.opdef import Value
from irrun.planning.steps import Plan, Step
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, ElementType, PartialShape

__all__ = ["Strict"]


@dataclass(slots=True)
class _Outputs:
    """The outputs of a plan for which inference does not prove what their ports declare."""

    plan: Plan
    wrong: Diagnostic | None = None
    """The first output that contradicts its port in every run."""
    open: dict[int, list[int]] = field(default_factory=dict)
    """The positions of the outputs to compare in each run, by the ``id`` of the step that computes them."""
    hidden: bool = False
    """Whether no step returns an output to compare, because its layer is fused, folded or dropped."""


class Strict:
    """Raises ExecutionError (IR602) for an output whose element type or shape contradicts its port.

    A run compares only what inference does not prove for all shapes that its inputs may have: in most models, nothing.
    """

    def __init__(self, model: Model) -> None:
        self._source = model.source
        self._known: dict[int, _Outputs] = {}  # by id() of the plan

    def hides(self, plan: Plan) -> bool:
        """Return whether no step of a plan, or of a body, returns an output that must be compared."""
        bodies = (body for step in plan.steps for body in step.bodies.values())
        return self._outputs(plan).hidden or any(map(self.hides, bodies))

    def begin(self, plan: Plan, arrays: Sequence[np.ndarray]) -> Mapping[int, list[int]]:
        """Return the positions of the outputs to compare in a run of a plan, by the ``id`` of their step.

        ``arrays`` are the inputs. Those of a body may contradict its Parameters.
        """
        for layer, array in zip(plan.model.parameters, arrays):
            declared = plan.values[layer.id, 0]
            if not declared.fits(array):
                self._refuse(layer, layer.outputs[0], declared, _value(array))
        outputs = self._outputs(plan)
        if outputs.wrong is not None:
            raise ExecutionError(outputs.wrong)
        return outputs.open

    def compare(self, step: Step, positions: Sequence[int], arrays: Sequence[np.ndarray]) -> None:
        """Compare outputs of a step, by their positions, with what their ports declare."""
        for position in positions:
            port, value = step.layer.outputs[position], _value(arrays[position])
            if not _proves(value, port):
                self._refuse(step.layer, port, _declared(port), value)

    def _outputs(self, plan: Plan) -> _Outputs:
        """Return what inference does not prove in a plan. It is computed once for each plan."""
        if id(plan) not in self._known:
            self._known[id(plan)] = self._examined(plan)
        return self._known[id(plan)]

    def _examined(self, plan: Plan) -> _Outputs:
        outputs = _Outputs(plan)
        returned = {slot: (id(step), position) for step in plan.steps for position, slot in enumerate(step.writes)}
        for slot, ((number, position), value) in enumerate(plan.values.items()):
            layer = plan.model.layers[number]
            port = layer.outputs[position]
            if layer.type.lower() in ("parameter", "const", "constant") or _proves(value, port):
                continue
            if value.shape.is_static and value.type.kind != "dynamic":
                outputs.wrong = outputs.wrong or self._finding(layer, port, _declared(port), value)
            elif slot in returned:
                step, place = returned[slot]
                outputs.open.setdefault(step, []).append(place)
            else:
                outputs.hidden = True
        return outputs

    def _refuse(self, layer: Layer, port: Port, declared: Value, value: Value) -> None:
        raise ExecutionError(self._finding(layer, port, declared, value))

    def _finding(self, layer: Layer, port: Port, declared: Value, value: Value) -> Diagnostic:
        """Return the diagnostic for an output that is ``value``."""
        shapes = f"declares {declared.shape}, but is {value.shape}"
        types = f"declares {declared.type}, but is {value.type}"
        return diagnostic(
            "IR602",
            f'{layer.type} "{layer.name}" output {port.id} {types if declared.shape.includes(value.shape) else shapes}',
            source=self._source, node=port.node, layer=layer.name, port=port.id,
            help="run `irrun check` to see which is wrong, or pass --no-strict (strict=False) to run the model "
            "regardless",
        )  # fmt: skip


def _proves(value: Value, port: Port) -> bool:
    """Return whether each array that may be ``value`` is as the port declares."""
    declared = _declared(port)
    same = declared.type.kind == "dynamic" or (value.type.kind != "dynamic" and declared.type.dtype == value.type.dtype)
    return same and declared.shape.includes(value.shape)


def _declared(port: Port) -> Value:
    """Return what a port declares."""
    return Value(port.type or ELEMENT_TYPES["dynamic"], UNKNOWN_RANK if port.shape is None else port.shape)


def _value(array: np.ndarray) -> Value:
    return Value(ElementType.of(array.dtype) or ELEMENT_TYPES["dynamic"], PartialShape.of(array.shape))
