"""Find constants that repeat a dim of an input: with another shape of this input, they are wrong.

The evidence is inference. The model is inferred with the new shapes. For the first layer that refuses them, each
number in the constants behind it that equals an old dim, or a product or multiple of old dims, is replaced by what the
new dims give. A replacement is taken if the layer then accepts its inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import combinations
from typing import Final

import numpy as np

from irrun.base.text import counted
from irrun.checking.hoisting import MOST_ELEMENTS, hoisted
from irrun.diagnostics import Refused, Report
from irrun.inference.bind import bind_all
from irrun.inference.propagate import Values, propagate
from irrun.model import Layer, Model, Shapes, Tensor, is_constant
from irrun.opdef import Op, Value
from irrun.types import ELEMENT_TYPES, UNKNOWN_RANK, Dim, PartialShape

__all__ = ["Axis", "FrozenDim", "frozen_dims", "with_frozen_dims"]

Axis = tuple[int, int]
"""An input by its position, and one of its axes."""


@dataclass(frozen=True, slots=True)
class FrozenDim:
    """An element of a constant that repeats dims of inputs.

    ``constant`` is a layer id and ``element`` a position in C order. ``number`` is the old element: the product of the
    old dims of ``axes`` times ``factor``. Without ``axes``, it is the only element of a Reshape that must change, and
    becomes -1.
    """

    constant: int
    element: int
    number: int
    axes: tuple[Axis, ...] = ()
    factor: Fraction = Fraction(1)

    def at(self, dims: Mapping[Axis, int]) -> int | None:
        """Return the element for other dims of the inputs; None if they do not give a whole number."""
        if not self.axes:
            return -1
        number = math.prod(dims[axis] for axis in self.axes) * self.factor
        return int(number) if number.denominator == 1 else None

    def describe(self, model: Model) -> str:
        """Return in words which number repeats which dims."""
        name = model.layers[self.constant].name
        dims = " times ".join(f'dim {axis} of input "{model.parameters[input].name}"' for input, axis in self.axes)
        factor = "" if self.factor == 1 else f" times {self.factor}"
        return f'"{name}" holds {self.number} in element {self.element}: {dims or "the rest of the elements"}{factor}'


def frozen_dims(model: Model, shapes: Shapes, *, batch: int | None = None) -> list[FrozenDim] | Layer:
    """Return the elements of constants that must change with the shapes of inputs, or a layer that refuses them still.

    ``model`` declares the old shapes, ``shapes`` are the new ones, as ``Model.reshape`` takes them. An unknown new dim
    is probed with a multiple of the old one. If ``batch`` is the old first dim of the inputs, outputs with this first
    dim must follow, too. Constants in bodies are looked at only if ``hoisted`` has moved them out. Raises FeedError
    (IR601) for an unknown input and a text that is no shape.
    """
    search = _Search(model, shapes, batch)
    found: tuple[FrozenDim, ...] = ()
    while (refusing := search.first_refusing(found)) is not None:
        more = search.mended(refusing, found)
        if more is None:
            return model.layers[model.order[refusing[0]]]
        found = more
    return list(found)


def with_frozen_dims(report: Report, model: Model, shapes: Shapes) -> Report:
    """Return a report about a model in new shapes, whose first error names the numbers that repeat the old shapes.

    ``model`` declares the old shapes. The report is the same if it has no error, or if other numbers do not help.
    """
    first = next((number for number, found in enumerate(report) if found.severity == "error"), None)
    model = model if first is None or model.is_fragment else hoisted(model).model
    found = [] if first is None or model.is_fragment else frozen_dims(model, shapes)
    if isinstance(found, Layer) or not found or first is None:
        return report
    notes = [frozen.describe(model) for frozen in found[:_MOST_NOTES]]
    notes += (
        [f"{counted(len(found) - _MOST_NOTES, 'more number')} of constants that must change"]
        if len(found) > _MOST_NOTES
        else []
    )
    notes.append("`irrun edit` with the same --shape replaces these numbers")
    diagnostics = list(report)
    diagnostics[first] = replace(diagnostics[first], notes=(*diagnostics[first].notes, *notes))
    return Report(tuple(diagnostics))


_MOST_NOTES: Final = 6
"""The most numbers that an error names."""


_Place = tuple[int, ...]
"""The position of a layer in the order of inference. If a layer in its body refuses, the positions inside follow."""


class _Refused(Exception):  # noqa: N818  (it ends an inference, and is no error)
    """The first layer that refuses its inputs, and the layers in its bodies that do."""

    def __init__(self, layer: int, inside: _Place) -> None:
        self.layer, self.inside = layer, inside


_MOST_CONSTANTS: Final = 32
"""The most constants behind a layer that are looked at, the nearest first."""
_MAX_NUMBER: Final = 1 << 31
"""Above the largest number of a constant: it may be of type i32."""
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17)
"""By what unknown dims are multiplied to probe them, so that dims of different axes differ."""


@dataclass(slots=True)
class _Search:
    """The search for the frozen dims of one model."""

    model: Model
    shapes: Shapes
    batch: int | None
    reshaped: Model = field(init=False)
    ops: Mapping[int, Op | None] = field(init=False)
    constants: dict[int, np.ndarray] = field(default_factory=dict)
    """The contents of the constants that are looked at, by layer id."""
    old: dict[Axis, int] = field(default_factory=dict)
    """The old numbers of the dims that change."""
    new: dict[Axis, int] = field(default_factory=dict)
    inputs: dict[int, Value] = field(default_factory=dict)
    """The values of the Parameters, by layer id."""
    place: dict[int, int] = field(init=False)
    """The place of each layer in the order of inference."""
    following: set[int] = field(default_factory=set)
    """The outputs whose first dim is that of the inputs."""

    def __post_init__(self) -> None:
        self.reshaped = self.model.reshape(self.shapes)
        self.ops = {layer.id: op for layer, op, _ in bind_all(self.reshaped)}
        self.place = {id: number for number, id in enumerate(self.model.order)}
        values: Values = {}
        propagate(self.model, self.ops, _settled, values, {})
        for id, layer in self.model.layers.items():
            value = values.get((id, 0)) if is_constant(layer) else None
            exact = None if value is None or not value.type.is_integer or value.type.bits < 32 else value.exact
            if exact is not None and exact.size <= MOST_ELEMENTS:
                self.constants[id] = exact
        for position, (tensor, after) in enumerate(zip(self.model.inputs, self.reshaped.inputs)):
            shape = self._probed(position, tensor, after)
            self.inputs[self.model.parameters[position].id] = Value(tensor.type or ELEMENT_TYPES["dynamic"], shape)
        for result in self.model.results if self.batch is not None else ():
            dims = _fed(self.model, values, result)
            if dims and dims[0].value == self.batch:
                self.following.add(result.id)

    def _probed(self, input: int, before: Tensor, after: Tensor) -> PartialShape:
        """Return the new shape of an input with numbers for its unknown dims, and note which dims change."""
        if not after.dims or len(before.dims) != len(after.dims):
            return UNKNOWN_RANK if after.shape is None else after.shape
        dims: list[Dim | int] = list(after.dims)
        for axis, (one, other) in enumerate(zip(before.dims, after.dims)):
            if one.value is not None and other.value != one.value:
                probes = [other.value or 0] if other.is_static else [one.value * p for p in _PRIMES[axis:] + _PRIMES]
                fitting = [n for n in (*probes, int(other.lo), other.hi) if other.fits(int(min(n, 1 << 40)))]
                dims[axis] = self.new[input, axis] = int(next((n for n in fitting if n != one.value), one.value))
                self.old[input, axis] = one.value
        return PartialShape.of(dims)

    def first_refusing(self, found: Sequence[FrozenDim]) -> _Place | None:
        """Return where the first layer is that refuses its inputs if the elements ``found`` are replaced, or None."""
        given = dict(self.inputs)
        for id in {frozen.constant for frozen in found}:
            array = self.constants[id].copy()
            for frozen in found:
                if frozen.constant == id:
                    array.flat[frozen.element] = frozen.at(self.new)
            given[id] = Value.of(array)
        values: Values = {}
        try:
            propagate(self.reshaped, self.ops, _accepted, values, given)
        except _Refused as refused:
            return self.place[refused.layer], *refused.inside
        number = next((new for (_, axis), new in self.new.items() if axis == 0), None)
        for id in self.following:
            dims = _fed(self.model, values, self.model.layers[id])
            if dims is not None and dims[0].value != number:
                return (self.place[id],)
        return None

    def mended(self, place: _Place, found: tuple[FrozenDim, ...]) -> tuple[FrozenDim, ...] | None:
        """Return ``found`` with elements whose replacement makes the layer at ``place`` accept its inputs, or None."""
        known = {(frozen.constant, frozen.element) for frozen in found}
        for group in self._groups(self.model.order[place[0]], known):
            after = self.first_refusing((*found, *group))
            if not self._is_later(after, place):
                continue
            same = dict.fromkeys(self._alike(group))
            alike = tuple(frozen for frozen in same if (frozen.constant, frozen.element) not in known)
            if len(alike) > len(group) and self._is_later(self.first_refusing((*found, *alike)), after, equal=True):
                return (*found, *alike)
            return (*found, *group)
        return None

    @staticmethod
    def _is_later(refusing: _Place | None, place: _Place | None, *, equal: bool = False) -> bool:
        """Return whether the first layer that refuses comes after another one, or none refuses."""
        if refusing is None or place is None:
            return refusing is None
        return refusing > place or (equal and refusing == place)

    def _groups(self, layer: int, known: set[tuple[int, int]]) -> Iterator[tuple[FrozenDim, ...]]:
        """Yield elements of the constants behind a layer that may have to change together, the likeliest first."""
        behind = list(self._behind(layer))
        options = [
            (rank, number, frozen)
            for number, id in enumerate(behind)
            for rank, frozen in self._options(id)
            if (id, frozen.element) not in known and self._is_number(frozen.at(self.new))
        ]
        options.sort(key=lambda option: option[:2])
        exact = [frozen for rank, _, frozen in options if rank < _PRODUCT]
        yield from ((frozen,) for frozen in exact)
        for id in behind:
            best: dict[tuple[Axis, ...], FrozenDim] = {}
            for frozen in exact:
                if frozen.constant == id and frozen.element not in {other.element for other in best.values()}:
                    best.setdefault(frozen.axes, frozen)
            if len(best) > 1:
                yield tuple(best.values())
        for axis in dict.fromkeys(frozen.axes for frozen in exact):
            group = [frozen for frozen in exact if frozen.axes == axis]
            own = [tuple(frozen for frozen in group if frozen.constant == id) for id in behind]
            yield from (part for part in (*own, tuple(group)) if len(part) > 1)
        yield from ((frozen,) for rank, _, frozen in options if rank >= _PRODUCT)

    @staticmethod
    def _is_number(number: int | None) -> bool:
        return number is not None and number < _MAX_NUMBER

    def _behind(self, layer: int) -> Iterator[int]:
        """Yield the constants on which a layer depends, the nearest first."""
        waiting, seen, count = [layer], {layer}, 0
        while waiting and count < _MOST_CONSTANTS:
            id, *waiting = waiting
            if id in self.constants:
                count += 1
                yield id
            for feed in self.model.feeds[id]:
                if feed is not None and feed[0] not in seen:
                    seen.add(feed[0])
                    waiting.append(feed[0])

    def _options(self, id: int) -> Iterator[tuple[int, FrozenDim]]:
        """Yield what the elements of a constant may repeat, with a rank: the likeliest first."""
        axes = list({(old, self.new[axis]): axis for axis, old in reversed(self.old.items())}.values())[::-1]
        reshapes = any(
            self.model.layers[reader].type.lower() == "reshape" for reader in self.model.consumers.get(id, ())
        )
        array = self.constants[id].ravel()
        for element, number in enumerate(array.tolist()):
            if number <= 0:
                continue
            if reshapes and -1 not in array:
                yield _REST, FrozenDim(id, element, number)
            for count in (1, 2, 3):
                for chosen in combinations(axes, count):
                    factor = Fraction(number, math.prod(self.old[axis] for axis in chosen) or 1)
                    rank = _PRODUCT if count > 1 else _SAME + (chosen[0][1] != element)
                    if factor != 1 or count > 1:
                        units = number == 1 or any(self.old[axis] == 1 for axis in chosen)
                        rank = _UNITS if units else rank if factor == 1 else _MULTIPLE + count
                    yield rank, FrozenDim(id, element, number, chosen, factor)

    def _alike(self, group: Sequence[FrozenDim]) -> Iterator[FrozenDim]:
        """Yield the same elements of all constants with the same contents that layers of the same type read."""
        for frozen in group:
            array, readers = self.constants[frozen.constant], self._readers(frozen.constant)
            for id, other in self.constants.items():
                if other.shape == array.shape and np.array_equal(other, array) and self._readers(id) == readers:
                    yield replace(frozen, constant=id)

    def _readers(self, id: int) -> set[str]:
        return {self.model.layers[reader].type for reader in self.model.consumers.get(id, ())}


_SAME, _PRODUCT, _MULTIPLE, _REST, _UNITS = 0, 2, 3, 8, 9
"""Ranks of what an element repeats: one dim, a product of dims, a multiple, the rest of a Reshape, a multiple of 1."""


def _accepted(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
    if isinstance(inferred, Exception):
        raise _Refused(layer.id, inferred.inside if isinstance(inferred, Refused) else ())
    return _settled(layer, inferred)


def _settled(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
    """Return the inferred outputs, and unknown ones where inference fails."""
    unknown = tuple(Value(p.type or ELEMENT_TYPES["dynamic"], UNKNOWN_RANK) for p in layer.outputs)
    return unknown if isinstance(inferred, Exception) else (*inferred, *unknown[len(inferred) :])[: len(unknown)]


def _fed(model: Model, values: Values, result: Layer) -> tuple[Dim, ...] | None:
    """Return the dims of an output, or None if its rank is not known."""
    feed = model.feeds[result.id][0] if result.inputs else None
    value = None if feed is None else values.get(feed)
    return None if value is None or not value.shape.dims else value.shape.dims
