"""Run a model whose layers compute as a behaviour says: in full precision, in a lower one, or anything between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from irrun.debug.low_precision.families import accumulated, channel_axes, inner_axis, is_quantized
from irrun.debug.low_precision.formats import (
    Format,
    grouped_weights,
    is_float,
    quantized_range,
    quantized_weights,
    widened,
)
from irrun.debug.low_precision.units import Output, Scope, Unit
from irrun.diagnostics import ModelError
from irrun.inference.propagate import weights_missing
from irrun.model import Model
from irrun.opdef import Kernel, Value
from irrun.planning import requests
from irrun.planning.steps import Plan, Step
from irrun.running.executor import Executable
from irrun.types import ELEMENT_TYPES

__all__ = ["Arrays", "Behaviour", "Deployed", "Isolated", "Run", "Simulation", "Style", "run_true"]

Arrays = Sequence[np.ndarray | None]
Run = Callable[..., tuple[np.ndarray, ...]]
"""The kernel of a layer: takes the inputs, returns the outputs."""


class Behaviour(Protocol):
    """How a layer computes its outputs from ``inputs`` in a run. ``run`` is its kernel in full precision."""

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]: ...


def run_true(unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
    """Compute a layer in full precision."""
    return run(*inputs)


class Simulation:
    """A model that runs with any behaviour of its layers.

    Values of f16 and bf16 are kept in float32, so that a model in f16 shows what f16 does to it. Layers that follow
    from constants or shapes alone, loops themselves, and random numbers are always computed in full precision. The
    kernels hold no packed weights, and no value lasts longer than in an ordinary run.

    Raises the errors of ``irrun.compile``.
    """

    def __init__(self, model: Model, max_memory: int) -> None:
        if model.weights is None and model.constants:
            raise ModelError(weights_missing(model))
        self.model = model
        self.units: dict[str, Unit] = {}
        """The layers that can be simulated, in the order of a run."""
        self.fixed: set[str] = set()
        """The layers that are none, for they follow from constants and shapes."""
        self.runs = 0
        self.results: list[frozenset[Output]] = []
        """For each output of the model, the outputs of layers that it may be."""
        self._behaviour: Behaviour = run_true
        self._executable = Executable(model, strict=False, max_memory=max_memory, rewrite=self._whole)

    def __call__(
        self, behaviour: Behaviour, arrays: Mapping[int, np.ndarray], *, keep_state: bool = False
    ) -> list[np.ndarray]:
        """Run the model on inputs by position, and return its outputs, widened to float32.

        The run begins with the initial state, unless ``keep_state`` goes on from the last run.
        """
        self._behaviour = behaviour
        self.runs += 1
        if not keep_state:
            self._executable.restart()
        outputs = self._executable(dict(arrays))
        return [widened(np.asarray(outputs[position])) for position in range(len(self.model.results))]

    def _whole(self, plan: Plan) -> Plan:
        """Return the plan of the model, rewritten."""
        scope = Scope.of(plan)
        rewritten = self._rewritten(scope)
        self.results = [scope.result(result.id) for result in self.model.results]
        return rewritten

    def _rewritten(self, scope: Scope) -> Plan:
        """Return the plan of a scope, with kernels that follow the behaviour of each run."""
        steps: list[Step] = []
        for step in scope.plan.steps:
            unit = None
            if step.bodies:
                bodies = {tag: scope.enter(step, tag) for tag in step.bodies}
                step = replace(step, bodies={tag: self._rewritten(body) for tag, body in bodies.items()})
                scope.leave(step, bodies)
            else:
                unit = scope.visit(step)
            if unit is not None:
                self.units[unit.name] = unit
            steps.append(replace(step, kernel=Kernel(self._kernel(step, unit, scope.plan))))
        self.fixed.update(scope.fixed({step.layer.id for step in steps}))
        return replace(scope.plan, steps=tuple(steps))

    def _kernel(self, step: Step, unit: Unit | None, plan: Plan) -> Callable[..., Any]:
        """Return the function that computes a layer as the behaviour says, or in full precision without a ``unit``."""
        kernel = step.kernel
        if not step.needed:
            kernel = requests.kernel(step.op, [*_open(plan, step)], len(step.writes))

        def run(*inputs: np.ndarray | None, **needed: Any) -> tuple[np.ndarray, ...]:
            returned = kernel.call(*inputs, **needed)
            outputs = returned if isinstance(returned, tuple) else (returned,)
            return tuple(widened(np.asarray(output)) for output in outputs)

        def simulated(*inputs: np.ndarray | None, **needed: Any) -> tuple[np.ndarray, ...]:
            wide = [None if array is None else widened(array) for array in inputs]
            if unit is None:
                return run(*wide, **needed)
            return self._behaviour(unit, wide, lambda *arrays: run(*arrays, **needed))

        return simulated


def _open(plan: Plan, step: Step) -> Iterator[Value | None]:
    """Yield what is known of the inputs of a step, without the contents of floats, because a kernel may pack them."""
    for feed in plan.model.feeds[step.layer.id]:
        value = None if feed is None else plan.values[feed]
        if value is not None and value.type.kind == "float":
            type = ELEMENT_TYPES["f32"] if value.type.name in ("f16", "bf16") else value.type
            value = Value(type, value.shape)
        yield value


# ---------------------------------------------------------------------------------------------
# the behaviours


@dataclass(frozen=True)
class Style:
    """How a layer computes in a precision. ``accumulates`` says that sums are kept in this precision, too.

    ``ranges`` are the least and greatest value of each input that int8 quantizes, by the name of the layer and the
    position of the input.
    """

    format: Format
    accumulates: bool = False
    ranges: Mapping[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    def lowers(self, unit: Unit) -> bool:
        """Return whether a layer computes in the precision at all."""
        if self.format.is_int4:
            return unit.op.type == "MatMul" and any(unit.constant[:2])
        return not self.format.is_quantized or is_quantized(unit.op)

    def together(self, names: Sequence[str]) -> frozenset[str]:
        """Return layers with all others that leave the precision with them."""
        return frozenset(names)

    def observe(self, unit: Unit, inputs: Arrays) -> None:
        """Measure the true inputs of a layer in the precision, where this says more than the outputs do."""

    def low(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        """Compute a layer in the precision, from values that other layers may have computed in a higher one."""
        if self.format.is_quantized:
            return self._quantized(unit, inputs, run)
        return self._stored(self._computed(unit, self._read(unit, inputs, (True,) * len(inputs)), run))

    def isolated(self, unit: Unit, inputs: Arrays, run: Run, *, stores: bool) -> tuple[np.ndarray, ...]:
        """Compute what a layer alone loses: it reads the values of other layers as they are.

        Without ``stores``, it does not round its outputs: the layer only passes on what others have rounded.
        """
        if self.format.is_quantized:
            return self._quantized(unit, inputs, run)
        arrays = self._read(unit, inputs, unit.own)
        return self._stored(self._computed(unit, arrays, run)) if stores else run(*arrays)

    def passes(self, unit: Unit, inputs: Arrays, run: Run) -> bool:
        """Return whether a layer turns inputs in the precision into outputs in the precision, without rounding.

        So do layers that move values or choose among them, such as Reshape and ReLU. Inputs beyond the range saturate,
        because a sum of infinite values would be infinite, and look like one of them.
        """
        if self.format.is_quantized:
            return False
        arrays = [None if array is None else self.format.round(array, saturate=True) for array in inputs]
        outputs, stored = run(*arrays), self._stored(self._computed(unit, arrays, run))
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(outputs, stored) if is_float(a))

    def _read(self, unit: Unit, inputs: Arrays, rounded: Sequence[bool]) -> list[np.ndarray | None]:
        return [
            self.format.round(array, saturate=constant) if array is not None and is_read else array
            for array, is_read, constant in zip(inputs, rounded, unit.constant)
        ]

    def _computed(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        if self.accumulates:
            total = accumulated(unit.op, inputs, self.format.round)
            if total is not None:
                return (total,)
        return unit.op.run_rounding(self.format.round, *inputs) if unit.op.rounds_inside else run(*inputs)

    def _stored(self, outputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        return tuple(self.format.round(output) for output in outputs)

    def _quantized(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        return run(*self._inputs(unit, inputs)) if self.lowers(unit) else run(*inputs)

    def _inputs(self, unit: Unit, inputs: Arrays) -> list[np.ndarray | None]:
        """Return the quantized inputs of a layer."""
        arrays = list(inputs)
        for position, array in enumerate(arrays[:2]):
            if array is None:
                continue
            if self.format.is_int4:
                if unit.constant[position]:
                    axis = inner_axis(unit.op, position, array.ndim)
                    arrays[position] = grouped_weights(array, axis, self.format)
            elif unit.constant[position]:
                channels = channel_axes(unit.op, position, array.ndim) if self.format.per_channel else ()
                arrays[position] = quantized_weights(array, channels)
            elif (unit.name, position) in self.ranges:
                arrays[position] = quantized_range(array, *self.ranges[unit.name, position])
        return arrays


@dataclass(frozen=True)
class Deployed:
    """The behaviour of a model in the precision, except for the layers ``kept``."""

    style: Style
    kept: Set[str]

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        return run(*inputs) if unit.name in self.kept else self.style.low(unit, inputs, run)


@dataclass(frozen=True)
class Isolated:
    """The behaviour of a model in which only the layer ``name`` is in the precision."""

    style: Style
    name: str
    stores: bool

    def __call__(self, unit: Unit, inputs: Arrays, run: Run) -> tuple[np.ndarray, ...]:
        return run(*inputs) if unit.name != self.name else self.style.isolated(unit, inputs, run, stores=self.stores)
