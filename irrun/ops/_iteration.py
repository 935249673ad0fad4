"""Shared by Loop and TensorIterator: sliced inputs, values carried to the next iteration, and concatenated outputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from irrun.model import MapEntry
from irrun.opdef import Body, Site, Value
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape, blank

Maps = Mapping[str, tuple[MapEntry, ...]]
"""The port maps of a layer by name."""
BackEdges = Sequence[tuple[int, int]]
"""Pairs of ids: the Result of the body that is carried, and the Parameter that reads it in the next iteration."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The ports of a layer and its body, grouped by their function. All ids are ids of body layers."""

    sliced: tuple[MapEntry, ...]
    whole: tuple[MapEntry, ...]
    """Inputs that enter whole: in each iteration or, where a back edge leads to the same Parameter, in the first
    one."""
    counter: int | None
    condition: int | None
    concatenated: tuple[MapEntry, ...]
    last: tuple[MapEntry, ...]
    carried: Mapping[int, int]
    """Each Parameter with the Result that feeds it in the next iteration."""

    @staticmethod
    def of(maps: Maps, back_edges: BackEdges) -> Wiring:
        entries = maps.get("port_map", ())
        inputs = [e for e in entries if e.kind == "input"]
        outputs = [e for e in entries if e.kind == "output"]
        return Wiring(
            tuple(e for e in inputs if e.axis is not None),
            tuple(e for e in inputs if e.axis is None and e.external is not None),
            next((e.internal for e in inputs if e.purpose == "current_iteration"), None),
            next((e.internal for e in outputs if e.purpose == "execution_condition"), None),
            tuple(e for e in outputs if e.axis is not None and e.external is not None),
            tuple(e for e in outputs if e.axis is None and e.external is not None),
            {parameter: result for result, parameter in back_edges},
        )


def _external(entry: MapEntry) -> int:
    assert entry.external is not None
    return entry.external


def infer_iterations(
    at: Site, wiring: Wiring, inputs: Sequence[Value], body: Body, limit: Dim | None, first: bool
) -> tuple[Value, ...]:
    """Return the outputs of at most ``limit`` iterations, or of any number if that is None.

    ``first`` means that one iteration is certain to happen.
    """
    slices: Dim | None = None
    inside: dict[int, Value] = {}
    for entry in wiring.sliced:
        value = inputs[_external(entry)]
        if value.shape.dims is None:
            inside[entry.internal] = Value(value.type, UNKNOWN_RANK)
            continue
        axis = at.axis(entry.axis or 0, len(value.shape), "C2", "sliced axis")
        is_slicing = entry.stride != 0 and entry.part_size > 0
        steps = f"stride is {entry.stride} and part_size is {entry.part_size}"
        at.require(is_slicing, "C5", f"{steps}, but stride may not be 0 and part_size has to be positive")
        parts = _parts(entry, value.shape[axis])
        length = value.shape[axis].value
        is_within = length is None or _slices_are_within(entry, length, parts.lo)
        at.require(
            is_within, "C5", f"{steps}, so a slice of input {entry.external} reaches outside its {length} elements"
        )
        fitting = parts.meet(slices or parts)
        message = f"input {entry.external} has {parts} slices, but another input has {slices}"
        at.require(fitting is not None, "C3", message)
        slices = fitting
        inside[entry.internal] = Value(value.type, value.shape.replace(axis, entry.part_size))
    if wiring.counter is not None:
        inside[wiring.counter] = body.declared(wiring.counter)
    for entry in wiring.whole:
        value = inputs[_external(entry)]
        # the contents of an input that a back edge replaces change with each iteration
        inside[entry.internal] = Value(value.type, value.shape) if entry.internal in wiring.carried else value
    results = _settle(wiring, inside, body)
    stops_by_itself = wiring.condition is not None and (
        (condition := results[wiring.condition].exact) is None or not condition.all()
    )
    count = (limit or slices or Dim(0, INF)).min(slices or limit or INF)
    if stops_by_itself:
        count = Dim(0 if not first else min(1, count.hi), count.hi)
    outputs: dict[int, Value] = {}
    for entry in wiring.last:
        value = results[entry.internal]
        outputs[_external(entry)] = Value(value.type, value.shape)
    for entry in wiring.concatenated:
        value = results[entry.internal]
        if value.shape.dims is None:
            outputs[_external(entry)] = Value(value.type, UNKNOWN_RANK)
            continue
        axis = at.axis(entry.axis or 0, len(value.shape), "C2", "concatenated axis")
        total = value.shape[axis] * count
        outputs[_external(entry)] = Value(value.type, value.shape.replace(axis, total))
    named = sorted(outputs)
    message = f"the port map names the outputs {named}, but the layer has {at.outputs}"
    at.require(named == list(range(at.outputs)), "C4", message)
    return tuple(outputs[i] for i in range(at.outputs))


def _parts(entry: MapEntry, dim: Dim) -> Dim:
    """Return the number of slices into which an axis is cut."""
    start, end = (dim + n if n < 0 else Dim(n) for n in (entry.start, entry.end))
    span = end - start if entry.stride > 0 else start - end
    if span.hi < 0:
        span = -span
    # `end` is the last index where it counts from the back or comes before `start`
    return (span + (1 if entry.end < 0 or entry.stride < 0 else 0)).max(0).ceil_div(entry.part_size)


def _first(entry: MapEntry, length: int, number: int) -> int:
    """Return the position of the first element of a slice on an axis of ``length`` elements."""
    start = entry.start + length if entry.start < 0 else entry.start
    return start + number * entry.stride - (entry.part_size - 1 if entry.stride < 0 else 0)


def _slices_are_within(entry: MapEntry, length: int, count: int) -> bool:
    """Return whether each of ``count`` slices lies within an axis of ``length`` elements."""
    ends = (_first(entry, length, number) for number in (0, count - 1))
    return count == 0 or all(0 <= first <= length - entry.part_size for first in ends)


def _settle(wiring: Wiring, inside: dict[int, Value], body: Body) -> Mapping[int, Value]:
    """Infer the body repeatedly, until the shapes of carried values no longer change, and return its Results.

    A change may move from one carried value to the next with each pass. After ``_MOST_PASSES``, the dims of all
    carried values are therefore taken as unknown, and if the ranks change as well, the ranks too.
    """
    for number in count():
        results = body(inside)
        wider = {
            parameter: _widened(inside[parameter].shape, results[result].shape)
            for parameter, result in wiring.carried.items()
        }
        if all(shape is inside[parameter].shape for parameter, shape in wider.items()):
            return results
        for parameter, shape in wider.items():
            if number > _MOST_PASSES:
                shape = UNKNOWN_RANK
            elif number == _MOST_PASSES and shape.dims is not None:
                shape = PartialShape(tuple(Dim.unknown() for _ in shape.dims))
            inside[parameter] = Value(inside[parameter].type, shape)
    raise AssertionError("unknown ranks no longer change")


_MOST_PASSES: Final = 8
"""The most inferences of a body that find the shapes of carried values exactly."""


def _widened(before: PartialShape, after: PartialShape) -> PartialShape:
    """Return a shape that contains both, or ``before`` itself if it does."""
    if before.dims is None:
        return before
    if after.dims is None or len(after.dims) != len(before.dims):
        return UNKNOWN_RANK
    dims = tuple(_wider(a, b) for a, b in zip(before.dims, after.dims))
    return before if all(a is b for a, b in zip(dims, before.dims)) else PartialShape(dims)


def _wider(before: Dim, after: Dim) -> Dim:
    """Return a dim that contains both. It is the same unknown as ``before`` only where that is certain."""
    if before.same(after):
        return before
    if not (before.lo <= after.lo and after.hi <= before.hi):
        return Dim.unknown()
    return before if before.term is None else Dim(before.lo, before.hi)


def run_iterations(
    wiring: Wiring, inputs: Sequence[np.ndarray], body: Body, limit: int | None, go_on: bool
) -> tuple[np.ndarray, ...]:
    """Iterate until ``limit``, the end of the slices or a false condition, and return the outputs."""
    slices = {e.internal: list(_cut(e, inputs[_external(e)])) for e in wiring.sliced}
    bounds = [len(parts) for parts in slices.values()] + ([] if limit is None else [limit])
    inside: dict[int, np.ndarray] = {e.internal: inputs[_external(e)] for e in wiring.whole}
    pieces: dict[int, list[np.ndarray]] = {_external(e): [] for e in wiring.concatenated}
    results: Mapping[int, np.ndarray] = {}
    iteration = 0
    while go_on and all(iteration < bound for bound in bounds):
        inside.update({id: parts[iteration] for id, parts in slices.items()})
        if wiring.counter is not None:
            wanted = body.declared(wiring.counter)
            inside[wiring.counter] = np.full(wanted.shape.static or (), iteration, wanted.type.dtype)
        results = body(inside)
        inside.update({parameter: results[result] for parameter, result in wiring.carried.items()})
        for entry in wiring.concatenated:
            pieces[_external(entry)].append(results[entry.internal])
        if wiring.condition is not None:
            go_on = bool(results[wiring.condition].all())
        iteration += 1
    outputs: dict[int, np.ndarray] = {}
    for entry in wiring.last:
        # without an iteration, the output is the value that would have been carried into the first one
        initial = next((inside[p] for p, result in wiring.carried.items() if result == entry.internal), None)
        outputs[_external(entry)] = results[entry.internal] if results else _initial(initial, body, entry)
    for entry in wiring.concatenated:
        outputs[_external(entry)] = _concatenated(entry, pieces[_external(entry)], body)
    return tuple(outputs[i] for i in sorted(outputs))


def _initial(carried: np.ndarray | None, body: Body, entry: MapEntry) -> np.ndarray:
    return carried if carried is not None else _empty(body.declared(entry.internal))


def _empty(value: Value, axis: int | None = None) -> np.ndarray:
    """Return zeros of the declared shape. Its size is 0 along ``axis`` and along unknown dims."""
    dims = [d.value or 0 for d in value.shape.dims or ()]
    if axis is not None and dims:
        dims[axis] = 0
    return blank(dims, np.empty(0, value.type.dtype))


def _cut(entry: MapEntry, array: np.ndarray) -> Iterable[np.ndarray]:
    """Yield the slices of an input in the order of the iterations."""
    axis = (entry.axis or 0) % array.ndim
    length = array.shape[axis]
    for i in range(_parts(entry, Dim(length)).lo):
        first = _first(entry, length, i)
        yield array[(slice(None),) * axis + (slice(first, first + entry.part_size),)]


def _concatenated(entry: MapEntry, pieces: list[np.ndarray], body: Body) -> np.ndarray:
    """Return the pieces of all iterations, concatenated; empty without an iteration."""
    if not pieces:
        return _empty(body.declared(entry.internal), entry.axis)
    return np.concatenate(pieces if entry.stride > 0 else pieces[::-1], axis=entry.axis or 0)
