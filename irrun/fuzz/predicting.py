"""Explain other values of an engine: by what a departure predicts, or by what the page of an operation leaves open.

An explanation holds only if every element is as it says. A departure that changes values has a function ``openvino`` in
``irrun/departures/NAME.py``, which computes what OpenVINO gives for a layer. A behaviour that a page leaves open
(``irrun.specification.undefined``) names the elements that nobody can judge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.api import compile
from irrun.departures import departures
from irrun.fuzz.judging import Disagreement, Expected, differs
from irrun.growing.graphs import Graph
from irrun.model import Model, is_constant
from irrun.opdef import Op, Refused
from irrun.planning.steps import Step
from irrun.specification import wording
from irrun.specification.undefined import shown

__all__ = ["Layer", "instead", "last_layer", "predicted"]

_MAX_TENSOR_BYTES: Final = 1 << 26


@dataclass(frozen=True)
class Layer:
    """A layer in one call, as the defining kernels compute it.

    ``constant`` says of each input whether it is a constant of the model, and ``dynamic`` whether the model declares
    open dims. ``before`` are the layers that compute its inputs in the graph, and ``given`` the attributes that the
    model writes.
    """

    op: Op
    inputs: Sequence[np.ndarray | None]
    outputs: Sequence[np.ndarray]
    constant: Sequence[bool]
    dynamic: bool
    before: tuple[Layer, ...] = ()
    given: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The version of the operation: ``Divide-1``."""
        return f"{self.op.type}-{self.op.since}"

    @property
    def operands(self) -> tuple[np.ndarray, np.ndarray]:
        """The two inputs of an element-wise operation, in shapes that numpy broadcasts as the operation does."""
        a, b = self.inputs
        return a, self.op.aligned(a, b)  # type: ignore[union-attr, return-value]

    def changed(self, **attributes: Any) -> Op:
        """Return the operation with other ``attributes``."""
        return type(self.op)(**{name: getattr(self.op, name) for name in self.op.attributes} | attributes)

    def computed(self, *inputs: np.ndarray | None, **attributes: Any) -> list[np.ndarray] | None:
        """Return what the defining kernel computes from other inputs, with some attributes changed.

        Returns None if the operation refuses them, or needs more than inputs.
        """
        if self.op.needs:
            return None
        try:
            with np.errstate(all="ignore"):
                found = self.changed(**attributes).run(*inputs)
        except Refused:
            return None
        return [np.asarray(array) for array in (found if isinstance(found, tuple | list) else [found])]


class _Steps:
    """A hook that keeps the steps of a run by the id of their layer."""

    def __init__(self) -> None:
        self.found: dict[int, tuple[Op, Sequence[np.ndarray | None], Sequence[np.ndarray]]] = {}

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: Step, inputs: Sequence[Any], outputs: Sequence[np.ndarray]) -> None:
        self.found[step.layer.id] = step.op, inputs, outputs


def last_layer(model: Model, calls: Sequence[Sequence[np.ndarray]]) -> Layer | None:
    """Return the layer that gives the first output, in the last of some calls, as the defining kernels compute it.

    Returns None if a Parameter or a constant gives the output. Raises IrrunError if they refuse the model.
    """
    steps = _Steps()
    executable = compile(model, exact=True, max_memory=_MAX_TENSOR_BYTES)
    for feeds in calls:
        executable(feeds, hooks=[steps])
    shapes = [parameter.outputs[0].shape for parameter in model.parameters]
    dynamic = any(shape is None or shape.static is None for shape in shapes)
    made: dict[int, Layer] = {}
    for id in model.order:
        if id not in steps.found:
            continue
        layer, (op, inputs, outputs) = model.layers[id], steps.found[id]
        fed = [model.fed_by(layer, position) for position in range(len(layer.inputs))]
        sources = [source[0] for source in fed if source is not None]
        before = tuple(made[source.id] for source in sources if source.id in made)
        constant = [is_constant(source) for source in sources]
        made[id] = Layer(op, inputs, outputs, constant, dynamic, before, frozenset(layer.attributes))
    source = model.fed_by(model.results[0], 0)
    return None if source is None else made.get(source[0].id)


def predicted(graph: Graph, found: Disagreement) -> str:
    """Return the name of what explains the values of an engine, or an empty text."""
    if found.expected is None or not found.outputs:
        return ""
    calls = range(found.call + 1) if graph.is_stateful() else [found.call]
    layer = last_layer(graph.model(dynamic=True), [graph.feeds(call) for call in calls])
    if layer is None:
        return ""
    expected = _opened(layer, found.expected)
    if expected is not found.expected and not differs(found.outputs, expected):
        return "what the page leaves open: " + ", ".join(_behaviours(layer))
    for departure in departures():
        outputs = None if departure.predicts is None else departure.predicts(layer)
        if outputs is not None and not differs(found.outputs, instead(expected, outputs)):
            return departure.name
    return ""


def _behaviours(layer: Layer) -> Iterator[str]:
    """Yield the behaviours that the page leaves open and that the layer shows."""
    page = wording(layer.name)
    for name in () if page is None else page.undefined:
        if any(mask.any() for mask in shown(layer.op, layer.inputs, name, len(layer.outputs))):
            yield name


def _opened(layer: Layer, expected: Expected) -> Expected:
    """Return what is expected of a layer, with any value for the elements that its page leaves open."""
    allowed = list(expected.allowed)
    for name in _behaviours(layer):
        masks = shown(layer.op, layer.inputs, name, len(allowed))
        for position, (mask, distance) in enumerate(zip(masks, allowed)):
            if mask.all():
                allowed[position] = None
            elif distance is not None and _fits(mask, distance.shape):
                allowed[position] = np.where(np.broadcast_to(mask, distance.shape), np.inf, distance)
    same = all(new is old for new, old in zip(allowed, expected.allowed))
    return expected if same else Expected(expected.outputs, allowed)


def _fits(mask: np.ndarray, shape: tuple[int, ...]) -> bool:
    try:
        np.broadcast_to(mask, shape)
    except ValueError:
        return False
    return True


def instead(expected: Expected, outputs: Sequence[np.ndarray | None]) -> Expected:
    """Return what is expected if an engine gives ``outputs``. Masked elements, and outputs of None, may be anything.

    Where the shape of an output stays, its elements may be as far away as before.
    """
    allowed: list[np.ndarray | None] = []
    for output, distance in zip(outputs, expected.allowed):
        if output is None:
            allowed.append(None)
            continue
        near = np.zeros(output.shape) if distance is None or distance.shape != output.shape else distance
        if output.dtype.kind == "f" or output.dtype.kind == "V":
            near = np.maximum(near, _RELATIVE * np.abs(np.ma.getdata(output).astype(np.float64)))
        allowed.append(np.where(np.ma.getmaskarray(output), np.inf, near))
    filled = (own if output is None else np.ma.getdata(output) for output, own in zip(outputs, expected.outputs))
    return Expected(list(filled), allowed)


_RELATIVE: Final = 1e-4
"""The relative distance that a predicted float may have."""
