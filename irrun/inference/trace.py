"""Trace each dim to its origin: find its formula over the inputs of its layer, and repeat this for these inputs.

No operation contains code for tracing. ``Op.infer`` of a layer runs again with a symbol for each dim of the inputs and
for each element of their contents (``data.shape[2]``, ``pads_begin[0]``). The terms of the inferred outputs are then
the formulas of the layer.
"""

from __future__ import annotations

import math
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

__all__ = ["FAR", "Derivation", "Link", "Place", "Trace", "chain"]

_MOST: Final = 64
"""The most elements of a tensor that are traced. Tensors that hold dims are small, and each symbol costs time."""
_STRIDE: Final = 32
"""The number of layers passing a number on unchanged that ``Trace.strides`` records as one jump.

Without the jumps, tracing every dim of a long chain of layers would take time quadratic in its length.
"""
FAR: Final = 1000
"""The most layers that one link skips in a chain with a limited number of links. The chain ends at such a link."""


@dataclass(frozen=True, slots=True)
class Place:
    """One dim of an output, or one element of its contents.

    ``index`` is the axis of the dim or, with ``is_element``, the position of the element in C order. ``layer`` is a
    layer id and ``output`` a position among the outputs of the layer.
    """

    trace: Trace = field(repr=False)
    layer: int
    output: int
    index: int
    is_element: bool = False


@dataclass(frozen=True, slots=True)
class Derivation:
    """The formula by which a layer computes the number at one place from its inputs.

    ``dim`` is the inferred number. ``formula`` is a term over symbols, and ``sources`` maps each of its symbols to a
    place of an input. An int as the formula means that the number does not depend on the inputs. The formula is None
    for Parameters, for constants, for numbers that depend on the data, and if the shape rule yields no formula.
    """

    place: Place
    dim: Dim
    formula: Term | int | None
    sources: Mapping[str, Place]

    @property
    def layer(self) -> Layer:
        return self.place.trace.model.layers[self.place.layer]

    def numbers(self) -> Iterator[str]:
        """Yield the numbers in the formula as text. They come from the attributes or from the operation itself."""
        if isinstance(self.formula, Term):
            yield from (str(leaf) for leaf in self.formula.leaves() if isinstance(leaf, int))
        elif self.formula is not None:
            yield str(self.formula)

    def unchanged(self) -> Place | None:
        """Return the place of an input whose number this place certainly has, or None.

        The formula is the symbol of that place, possibly with numbers added and subtracted that cancel each other.
        """
        term = self.formula
        while isinstance(term, Term) and term.op in ("+", "-"):
            term = term.args[0]
        if not isinstance(term, Term) or term.args:
            return None
        source = self.sources[term.op]
        return source if term is self.formula or self.dim.same(source.trace.dim(source)) else None


@dataclass(frozen=True, slots=True)
class Link:
    """One step of a chain. ``through`` is the number of skipped layers between this step and the link that uses it.

    The skipped layers pass the number on unchanged.
    """

    derivation: Derivation
    through: int
    ends: Mapping[str, Place]
    """For each symbol of the formula, the place of the link to which the symbol leads."""


class Trace:
    """The inferred values of a model or body, with the origin of each dim.

    ``ops`` and ``values`` are the results of binding and inference. Each is computed here if it is not passed.
    A caller may pass a ``values`` that inference is still filling.
    """

    def __init__(
        self,
        model: Model,
        ops: Mapping[int, Op | None] | None = None,
        values: Values | None = None,
        *,
        outer: tuple[Trace, int, str] | None = None,
    ) -> None:
        """``outer`` is for a body: the trace of the outer model, the id of the layer, and the tag of the body."""
        self.model = model
        self.outer = outer
        self.refused: dict[int, Exception] = {}
        """The exceptions of the layers whose inference failed, by layer id."""
        self.ops = {layer.id: op for layer, op, _ in bind_all(model)} if ops is None else ops
        self._runs: dict[int, _Run] = {}
        self._derivations: dict[Place, Derivation] = {}
        self.strides: dict[Place, Place] = {}
        """Jumps over layers that pass a number on unchanged: from a place to the place ``_STRIDE`` layers earlier."""
        self.ends: dict[Place, tuple[Place, int]] = {}
        """For places whose number layers pass on unchanged: where it begins, and the number of these layers."""
        self._bodies: dict[int, dict[str, Trace]] = {}
        if values is None:
            values = {}
            given = {id: Value.of(contents) for id, (contents, _) in model.contents.items()}
            if outer is not None:
                given |= outer[0]._given(outer[1], outer[2])
            propagate(model, self.ops, self._settle, values, given)
        self.values = values

    def _settle(self, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        """Return the inferred outputs, or the declared ones where inference failed or gave too few."""
        claims = declared(layer)
        if isinstance(inferred, Exception):
            self.refused[layer.id] = inferred
            return claims
        return (*inferred, *claims[len(inferred) :])[: len(claims)]

    def _given(self, id: int, tag: str) -> Mapping[int, Value]:
        """Return the values that a layer passes to the Parameters of a body, or none if its rule runs no body."""
        op, layer = self.ops[id], self.model.layers[id]
        if op is None:
            return {}
        bodies = {name: _Recorded(body) for name, body in layer.bodies.items()}
        try:
            infer(op, site(layer), self._inputs(id), needed(op, self.model, layer) | {"bodies": bodies})
        except Exception:  # Refused, or a bug in the rule: irrun check reports both
            return {}
        return bodies[tag].given

    def _inputs(self, id: int) -> list[Value | None]:
        return [None if feed is None else self.values.get(feed) for feed in self.model.feeds[id]]

    def bodies(self, id: int) -> Mapping[str, Trace]:
        """Return the traces of a layer's bodies, by the name of their element."""
        if id not in self._bodies:
            bodies = self.model.layers[id].bodies
            self._bodies[id] = {tag: Trace(body, outer=(self, id, tag)) for tag, body in bodies.items()}
        return self._bodies[id]

    def all(self) -> Iterator[Trace]:
        """Yield this trace and the traces of all bodies in it, at any depth."""
        yield self
        for id, layer in self.model.layers.items():
            if layer.bodies:
                for body in self.bodies(id).values():
                    yield from body.all()

    def forget(self) -> None:
        """Forget the steps that were found, and the traces of bodies, which refer back to this trace.

        The memory of a trace is then free as soon as nobody uses it, without a collection of garbage.
        """
        for bodies in self._bodies.values():
            for body in bodies.values():
                body.forget()
        for known in (self._bodies, self._runs, self._derivations, self.strides, self.ends):
            known.clear()

    # -- places and steps -------------------------------------------------------------------------

    def places(self, id: int, output: int) -> Iterator[Place]:
        """Yield the dims of an output, then the elements of its contents if these are at most ``_MOST`` integers."""
        value = self.values.get((id, output))
        if value is None:
            return
        for axis in range(len(value.shape.dims or ())):
            yield Place(self, id, output, axis)
        if value.type.is_integer and value.data is not None and value.data.size <= _MOST:
            for index in range(value.data.size):
                yield Place(self, id, output, index, True)

    def dim(self, place: Place) -> Dim:
        """Return the inferred dim or element at a place; without bounds if nothing is known."""
        value = self.values.get((place.layer, place.output))
        return (value and _entry(value, place)) or Dim(-INF if place.is_element else 0, INF)

    def derivation(self, place: Place) -> Derivation:
        """Return the formula of the number at a place over the inputs of its layer."""
        if place not in self._derivations:
            self._derivations[place] = self._derivation(place)
        return self._derivations[place]

    def _derivation(self, place: Place) -> Derivation:
        dim = self.dim(place)
        if self.outer is not None and self.model.layers[place.layer] in self.model.parameters:
            trace, id, tag = self.outer
            run = trace._run(id)
            value = run.given.get(tag, {}).get(place.layer)
        else:
            run = self._run(place.layer)
            value = run.outputs[place.output] if place.output < len(run.outputs) else None
        entry = value and _entry(value, place)
        if entry is None or entry.term is None or not run.has_sources(entry.term):
            return Derivation(place, dim, dim.value if entry else None, {})
        return Derivation(place, dim, entry.term, run.sources(entry.term))

    def _run(self, id: int) -> _Run:
        """Return the result of inferring a layer over symbols, which is computed once."""
        if id not in self._runs:
            self._runs[id] = self._over_symbols(id)
        return self._runs[id]

    def _over_symbols(self, id: int) -> _Run:
        """Infer a layer whose inputs have a symbol for each dim and element."""
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
        except Exception:  # a bug in the rule, which irrun check reports
            run.refused = None
        run.given = {tag: body.given for tag, body in bodies.items()}
        return run

    def blamed(self, id: int) -> dict[str, Place]:
        """Return the places of the dims that made a layer's rule raise Refused, by their symbols in the layer.

        The result is empty if the rule did not raise Refused or did not name the dims.
        """
        run = self._run(id)
        terms = [d.term for d in run.refused.dims if d.term] if run.refused else []
        return {name: place for term in terms for name, place in run.sources(term).items()}


def chain(
    place: Place, *, everything: bool = False, most: int | None = None, told: Container[Place] = (), far: int = FAR
) -> list[Link]:
    """Return the steps from a place back to Parameters and constants. Each step comes once, before its sources.

    Layers that pass a number on unchanged are skipped, unless ``everything`` is true. ``most`` limits the number of
    links, and a chain with this limit does not go on beyond ``far`` skipped layers in a row. The chain does not go
    on beyond a place in ``told`` either: those are the places that a report has already explained.
    """
    far = 0 if everything else sys.maxsize if most is None else far
    links: list[Link] = []
    seen: set[Place] = set()
    first = place.trace.derivation(place)
    waiting = [(first, 0)]
    # if the layer of `place` itself passes the number on, begin with the layer that computes it
    if far and isinstance(first.formula, Term) and not first.formula.args:
        (source,) = first.sources.values()
        waiting = [_passed(source, far)]
    while waiting and len(links) != most:
        derivation, through = waiting.pop()
        if derivation.place in seen:
            continue
        seen.add(derivation.place)
        read = {name: _passed(source, far) for name, source in derivation.sources.items()}
        links.append(Link(derivation, through, {name: end.place for name, (end, _) in read.items()}))
        if derivation.place not in told and (everything or through < far):
            waiting += reversed(read.values())
    return links


def _passed(place: Place, far: int) -> tuple[Derivation, int]:
    """Skip layers that pass a number on unchanged, but at most ``far``. Return the next step and the number of layers.

    With a limit, a jump is recorded in ``Trace.strides`` every ``_STRIDE`` layers. Without one, the whole way is in
    ``Trace.ends``, so that each layer is skipped only once, however many places lead through it.
    """
    if far == sys.maxsize:
        return _end(place)
    through = 0
    begun, before = place, 0  # where the next jump begins, and the number of layers before it
    while through < far:
        stride = place.trace.strides.get(place)
        if stride is not None and through + _STRIDE <= far:
            place, through = stride, through + _STRIDE
            begun, before = place, through
            continue
        source = place.trace.derivation(place).unchanged()
        if source is None:
            break
        place, through = source, through + 1
        if through - before == _STRIDE:
            begun.trace.strides[begun] = place
            begun, before = place, through
    return place.trace.derivation(place), through


def _end(place: Place) -> tuple[Derivation, int]:
    """Skip all layers that pass a number on unchanged. Return the next step and the number of layers."""
    skipped: list[Place] = []
    beyond = 0
    while True:
        known = place.trace.ends.get(place)
        if known is not None:
            place, beyond = known
            break
        source = place.trace.derivation(place).unchanged()
        if source is None:
            break
        skipped.append(place)
        place = source
    for number, one in enumerate(reversed(skipped), 1):
        one.trace.ends[one] = place, beyond + number
    return place.trace.derivation(place), beyond + len(skipped)


def _entry(value: Value, place: Place) -> Dim | None:
    """Return the dim or element of ``value`` at a place, or None if it is not known."""
    if place.is_element:
        known = value.data if value.type.is_integer else None
        return as_dim(known.flat[place.index]) if known is not None and place.index < known.size else None
    dims = value.shape.dims
    return dims[place.index] if dims is not None and place.index < len(dims) else None


@dataclass(slots=True)
class _Run:
    """The result of inferring a layer over symbols: its outputs, and the place of each symbol."""

    outputs: tuple[Value, ...] = ()
    places: dict[str, Place] = field(default_factory=dict)
    given: dict[str, Mapping[int, Value]] = field(default_factory=dict)
    """The values that the layer passes to its bodies, by element name of the body and layer id of the Parameter."""
    refused: Refused | None = None
    """The refusal of the layer's rule, if it did not accept the inputs."""
    _terms: dict[object, Term] = field(default_factory=dict)
    """The symbol of each term of the model: unknown dims with the same term get the same symbol, so they stay equal."""

    def has_sources(self, term: Term) -> bool:
        """Return whether a formula has symbols of the inputs alone, and none that the layer itself has introduced."""
        return all(leaf in self.places for leaf in term.leaves() if isinstance(leaf, str))

    def sources(self, term: Term) -> dict[str, Place]:
        """Return the place of each symbol in a formula."""
        return {leaf: self.places[leaf] for leaf in term.leaves() if isinstance(leaf, str)}

    def named(self, name: str, value: Value, trace: Trace, feed: tuple[int, int]) -> Value:
        """Return ``value`` with a symbol as the term of each dim and element, and record the places of the symbols.

        ``name`` is the name of the input in its operation and ``feed`` the output of ``trace`` that feeds it.
        Elements get symbols only if the contents are at most ``_MOST`` integers.
        """
        shape, data = value.shape, value.data
        if shape.dims is not None:
            dims = [
                self._symbol(f"{name}.shape[{axis}]", dim, Place(trace, *feed, axis))
                for axis, dim in enumerate(shape.dims)
            ]
            shape = PartialShape(tuple(dims))
        size = value.shape.static  # a shape such as [0,?] is not static, although its number of elements is known
        if value.type.is_integer and size is not None and 0 < math.prod(size) <= _MOST:
            entries = value.dims() or ()
            data = np.empty(math.prod(size), object)
            for index, entry in enumerate(entries):
                at = ",".join(map(str, np.unravel_index(index, size))) if size else ""
                symbol = f"{name}[{at}]" if at else name
                data[index] = self._symbol(symbol, entry, Place(trace, *feed, index, True))
            data = data.reshape(size)
        return Value(value.type, shape, data)

    def _symbol(self, name: str, dim: Dim, place: Place) -> Dim:
        """Return ``dim`` with the symbol ``name`` as its term, or with the symbol that its term already has."""
        if dim.is_static or dim.term is None:
            self.places[name] = place
            return Dim(dim.lo, dim.hi, Term(name))
        if dim.term not in self._terms:
            self._terms[dim.term] = Term(name)
            self.places[name] = place
        return Dim(dim.lo, dim.hi, self._terms[dim.term])


class _Recorded(InferredBody):
    """A body that records in ``given`` the values of its Parameters in the last call."""

    given: Mapping[int, Value] = {}

    def __call__(self, inputs: Mapping[int, Value]) -> dict[int, Value]:
        self.given = dict(inputs)
        return super().__call__(inputs)


class _OverSymbols(_Recorded):
    """A body in which the outputs of constants (and of other layers without inputs) have symbols."""

    def __init__(self, trace: Trace, tag: str, run: _Run) -> None:
        super().__init__(trace.model)
        self.trace, self.tag, self.run = trace, tag, run

    def settle(self, layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        outputs = super().settle(layer, inferred)
        if layer.inputs:
            return outputs
        return [
            self.run.named(f"{self.tag}.{self.model.output_name(layer.id, i)}", value, self.trace, (layer.id, i))
            for i, value in enumerate(outputs)
        ]
