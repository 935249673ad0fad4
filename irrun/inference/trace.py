"""Where each dim comes from: its formula over what its layer reads, followed back to Parameters and constants.

No operation has a line of code for it. ``infer`` of a layer is run again with each dim of its inputs, and each
element of their contents, under a symbol of its own (``data.shape[2]``, ``pads_begin[0]``); the terms of the outputs
are then the formulas of the layer.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.inference.bind import bind_all
from irrun.inference.layer import infer, input_name
from irrun.inference.propagate import InferredBody, Values, declared, needed, propagate, site
from irrun.model import Layer, Model
from irrun.opdef import Op, Value
from irrun.types import INF, Dim, PartialShape, Term, as_dim

__all__ = ["Link", "Place", "Step", "Trace", "chain"]

_MOST: Final = 64
"""Contents of more elements than this have no symbols, and a formula of more terms is not written out."""
_STRIDE: Final = 32
"""How many layers that only pass a number on are remembered as one step."""
_FAR: Final = 1000
"""A chain of limited length ends where so many layers pass a number on."""


@dataclass(frozen=True, slots=True)
class Place:
    """One dim of an output, or one element of its contents: ``index`` is an axis or a position among the elements."""

    trace: Trace = field(repr=False)
    layer: int
    output: int
    index: int
    is_element: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Where one place has its number from.

    ``formula`` is over the symbols in ``sources``. It is None where the rule of the operation does not tell, and
    where there is nothing to tell: for Parameters, constants, and what depends on the data.
    """

    place: Place
    dim: Dim
    formula: Term | int | None
    sources: Mapping[str, Place]

    @property
    def layer(self) -> Layer:
        return self.place.trace.model.layers[self.place.layer]

    def numbers(self) -> Iterator[str]:
        """The numbers that stand in the formula: they are from the attributes, or the operation's own."""
        if isinstance(self.formula, Term):
            yield from (str(leaf) for leaf in self.formula.leaves() if isinstance(leaf, int))
        elif self.formula is not None:
            yield str(self.formula)

    def unchanged(self) -> Place | None:
        """The place that this one only passes on: its formula is that place, or adds to it what it takes away."""
        term = self.formula
        while isinstance(term, Term) and term.op in ("+", "-"):
            term = term.args[0]
        if not isinstance(term, Term) or term.args:
            return None
        source = self.sources[term.op]
        return source if term is self.formula or self.dim.same(source.trace.dim(source)) else None


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain, which its reader reads ``through`` so many layers that only pass it on."""

    step: Step
    through: int
    ends: Mapping[str, Place]
    """For each symbol of the formula the place of the link that it leads to."""


class Trace:
    """The layers of a model or body with what is known of their outputs, and where each of these has it from.

    ``ops`` and ``values`` are what they are bound to and what was inferred, where that is known already; ``values``
    may still be growing.
    """

    def __init__(
        self,
        model: Model,
        ops: Mapping[int, Op | None] | None = None,
        values: Values | None = None,
        *,
        outer: tuple[Trace, int, str] | None = None,
    ) -> None:
        """``outer``, for a body: the trace that its layer stands in, the layer's id, and the tag of the body."""
        self.model = model
        self.outer = outer
        self.refused: dict[int, Exception] = {}
        """Why nothing could be inferred of a layer."""
        self.ops = {layer.id: op for layer, op, _ in bind_all(model)} if ops is None else ops
        self._runs: dict[int, _Run] = {}
        self._steps: dict[Place, Step] = {}
        self.strides: dict[Place, Place] = {}
        """From some places, what is found ``_STRIDE`` steps on, all of which only pass a number on."""
        self._bodies: dict[int, dict[str, Trace]] = {}
        if values is None:
            values = {}
            given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
            if outer is not None:
                given |= outer[0]._given(outer[1], outer[2])
            propagate(model, self.ops, self._settle, values, given)
        self.values = values

    def _settle(self, layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        said = declared(layer)
        if isinstance(found, Exception):
            self.refused[layer.id] = found
            return said
        return (*found, *said[len(found) :])[: len(said)]

    def _given(self, id: int, tag: str) -> Mapping[int, Value]:
        """What the layer hands to the Parameters of a body; nothing where it does not run it."""
        op, layer = self.ops[id], self.model.layers[id]
        if op is None:
            return {}
        bodies = {name: _Recorded(body) for name, body in layer.bodies.items()}
        try:
            infer(op, site(layer), self._inputs(id), needed(op, self.model, layer) | {"bodies": bodies})
        except Exception:  # refused or failed; that is told elsewhere
            return {}
        return bodies[tag].given

    def _inputs(self, id: int) -> list[Value | None]:
        return [None if feed is None else self.values.get(feed) for feed in self.model.feeds[id]]

    def bodies(self, id: int) -> Mapping[str, Trace]:
        """The traces of a layer's bodies, by tag."""
        if id not in self._bodies:
            bodies = self.model.layers[id].bodies
            self._bodies[id] = {tag: Trace(body, outer=(self, id, tag)) for tag, body in bodies.items()}
        return self._bodies[id]

    def all(self) -> Iterator[Trace]:
        """This trace and those of all bodies in it."""
        yield self
        for id, layer in self.model.layers.items():
            if layer.bodies:
                for body in self.bodies(id).values():
                    yield from body.all()

    # -- places and steps -------------------------------------------------------------------------

    def places(self, id: int, output: int) -> Iterator[Place]:
        """The dims of an output, then the elements of its contents where these are integers and few."""
        value = self.values.get((id, output))
        if value is None:
            return
        for axis in range(len(value.shape.dims or ())):
            yield Place(self, id, output, axis)
        if value.type.is_integer and value.data is not None and value.data.size <= _MOST:
            for index in range(value.data.size):
                yield Place(self, id, output, index, True)

    def dim(self, place: Place) -> Dim:
        """What is known of a place."""
        value = self.values.get((place.layer, place.output))
        return (value and _entry(value, place)) or Dim(-INF if place.is_element else 0, INF)

    def step(self, place: Place) -> Step:
        """Where a place has its number from, one step back."""
        if place not in self._steps:
            self._steps[place] = self._step(place)
        return self._steps[place]

    def _step(self, place: Place) -> Step:
        dim = self.dim(place)
        if self.outer is not None and self.model.layers[place.layer] in self.model.parameters:
            trace, id, tag = self.outer
            run = trace._run(id)
            value = run.given.get(tag, {}).get(place.layer)
        else:
            run = self._run(place.layer)
            value = run.outputs[place.output] if place.output < len(run.outputs) else None
        found = value and _entry(value, place)
        if found is None or found.term is None:
            return Step(place, dim, dim.value if found else None, {})
        return Step(place, dim, found.term, run.sources(found.term))

    def _run(self, id: int) -> _Run:
        """A layer inferred over symbols."""
        if id not in self._runs:
            self._runs[id] = self._over_symbols(id)
        return self._runs[id]

    def _over_symbols(self, id: int) -> _Run:
        op, layer, run = self.ops[id], self.model.layers[id], _Run()
        if op is None or not layer.inputs:
            return run
        inputs: list[Value | None] = []
        for position, (feed, value) in enumerate(zip(self.model.feeds[id], self._inputs(id))):
            named = feed and value and run.named(input_name(op, position), value, self, feed)
            inputs.append(named or None)
        more = needed(op, self.model, layer)
        bodies = {tag: _OverSymbols(trace, tag, run) for tag, trace in self.bodies(id).items()}
        if bodies:
            more["bodies"] = bodies
        try:
            run.outputs = infer(op, site(layer, self.model.unique_names[id]), inputs, more)
        except Refused as refused:
            run.refused = refused
        except Exception:  # a bug of the rule; a check tells
            run.refused = None
        run.given = {tag: body.given for tag, body in bodies.items()}
        return run

    def blamed(self, id: int) -> dict[str, Place]:
        """The dims for which a layer is refused, where its rule names them, by what the layer calls them."""
        run = self._run(id)
        terms = [d.term for d in run.refused.dims if d.term] if run.refused else []
        return {name: place for term in terms for name, place in run.sources(term).items()}


def chain(
    place: Place, *, everything: bool = False, most: int | None = None, told: Container[Place] = ()
) -> list[Link]:
    """The steps from a place back to Parameters and constants, each once, a reader before what it reads.

    What layers only pass on is one link, unless ``everything`` is asked for. With ``most``, at most so many links are
    made, and none behind a great many layers. None is made behind a place that is in ``told``.
    """
    far = 0 if everything else sys.maxsize if most is None else _FAR
    links: list[Link] = []
    seen: set[Place] = set()
    first = place.trace.step(place)
    waiting = [(first, 0)]
    if far and isinstance(first.formula, Term) and not first.formula.args:  # the layer itself only passes it on
        (source,) = first.sources.values()
        waiting = [_passed(source, far)]
    while waiting and len(links) != most:
        step, through = waiting.pop()
        if step.place in seen:
            continue
        seen.add(step.place)
        read = {name: _passed(source, far) for name, source in step.sources.items()}
        links.append(Link(step, through, {name: end.place for name, (end, _) in read.items()}))
        if step.place not in told and (everything or through < far):
            waiting += reversed(read.values())
    return links


def _passed(place: Place, far: int) -> tuple[Step, int]:
    """The first step from a place on that does more than pass a number on, and how many layers stand before it."""
    through = 0
    begun, before = place, 0  # where the stride begins that is made now
    while through < far:
        stride = place.trace.strides.get(place)
        if stride is not None and through + _STRIDE <= far:
            place, through = stride, through + _STRIDE
            begun, before = place, through
            continue
        source = place.trace.step(place).unchanged()
        if source is None:
            break
        place, through = source, through + 1
        if through - before == _STRIDE:
            begun.trace.strides[begun] = place
            begun, before = place, through
    return place.trace.step(place), through


def _entry(value: Value, place: Place) -> Dim | None:
    """The dim or element of a value at a place."""
    if place.is_element:
        known = value.data if value.data is not None and value.data.dtype.kind in "iuO" else None
        return as_dim(known.flat[place.index]) if known is not None and place.index < known.size else None
    dims = value.shape.dims
    return dims[place.index] if dims is not None and place.index < len(dims) else None


@dataclass(slots=True)
class _Run:
    """A layer inferred over symbols: its outputs, and what each symbol stands for."""

    outputs: tuple[Value, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    given: dict[str, Mapping[int, Value]] = field(default_factory=dict)
    """What the Parameters of its bodies are given."""
    refused: Refused | None = None
    _terms: dict[object, Term] = field(default_factory=dict)
    """The symbol of each unknown: what is equal for certain stays so."""

    def sources(self, term: Term) -> dict[str, Place]:
        """What the symbols of a formula stand for."""
        return {leaf: self.places[leaf] for leaf in term.leaves() if isinstance(leaf, str)}

    def named(self, name: str, value: Value, trace: Trace, feed: tuple[int, int]) -> Value:
        """The value with a symbol for each dim and element."""
        shape, data = value.shape, value.data
        if shape.dims is not None:
            dims = [
                self._symbol(f"{name}.shape[{axis}]", dim, Place(trace, *feed, axis))
                for axis, dim in enumerate(shape.dims)
            ]
            shape = PartialShape(tuple(dims))
        if value.type.is_integer and (count := value.shape.count().value) is not None and count <= _MOST:
            entries = value.dims() or ()
            data = np.empty(count, object)
            size = value.shape.static or ()
            for index, entry in enumerate(entries):
                at = ",".join(map(str, np.unravel_index(index, size))) if size else ""
                symbol = f"{name}[{at}]" if at else name
                data[index] = self._symbol(symbol, entry, Place(trace, *feed, index, True))
            data = data.reshape(size)
        return Value(value.type, shape, data)

    def _symbol(self, name: str, dim: Dim, place: Place) -> Dim:
        if dim.is_static or dim.term is None:
            self.places[name] = place
            return Dim(dim.lo, dim.hi, Term(name))
        if dim.term not in self._terms:
            self._terms[dim.term] = Term(name)
            self.places[name] = place
        return Dim(dim.lo, dim.hi, self._terms[dim.term])


class _Recorded(InferredBody):
    """A body that remembers what it was last given."""

    given: Mapping[int, Value] = {}

    def __call__(self, inputs: Mapping[int, Value]) -> dict[int, Value]:
        self.given = dict(inputs)
        return super().__call__(inputs)


class _OverSymbols(_Recorded):
    """A body whose constants have symbols."""

    def __init__(self, trace: Trace, tag: str, run: _Run) -> None:
        super().__init__(trace.model)
        self.trace, self.tag, self.run = trace, tag, run

    def settle(self, layer: Layer, found: tuple[Value, ...] | Exception) -> Sequence[Value]:
        outputs = super().settle(layer, found)
        if layer.inputs:
            return outputs
        return [
            self.run.named(f"{self.tag}.{self.model.output_name(layer.id, i)}", value, self.trace, (layer.id, i))
            for i, value in enumerate(outputs)
        ]
