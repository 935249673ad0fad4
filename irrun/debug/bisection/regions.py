"""Regions of a model: sets of layers that can be cut out and run on their own, on known inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import networkx as nx

from irrun.engines import Place
from irrun.inference.propagate import Values
from irrun.inference.settled import settled
from irrun.ir.extract import constant_layers, cut
from irrun.model import Model

__all__ = ["Output", "Part", "Region"]

Output = tuple[int, int]
"""An output of a layer: the layer's id, and the position among its outputs."""

_SILENT = ("parameter", "result", "assign")


@dataclass(frozen=True, slots=True)
class Part:
    """A model cut out of another. Its inputs and outputs, in order, are outputs of layers of the other."""

    model: Model
    inputs: tuple[Output, ...]
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Region:
    """Layers of a model, in topological order, whose values reach some outputs of the model.

    ``known`` maps each output that the reference can show to its place there. An input of the whole model has no place.
    ``results`` are the ids of the Results that count. A prefix of ``layers`` never depends on what follows.
    """

    model: Model
    known: Mapping[Output, Place | None]
    results: Sequence[int]
    values: Values = field(repr=False)
    layers: tuple[int, ...]

    @staticmethod
    def of(model: Model, known: Mapping[Output, Place | None], results: Sequence[int]) -> Region:
        """Return the region of all layers that compute one of the Results, constants aside."""
        used = _used(model, results)
        apart = constant_layers(model)
        layers = tuple(
            id for id in model.order if id in used and id not in apart and model.layers[id].type.lower() not in _SILENT
        )
        return Region(model, known, results, settled(model), layers)

    def only(self, layers: Collection[int]) -> Region:
        """Return the region of some of the layers."""
        kept = tuple(id for id in self.layers if id in layers)
        return Region(self.model, self.known, self.results, self.values, kept)

    @cached_property
    def _constants(self) -> set[int]:
        return constant_layers(self.model)

    @cached_property
    def _readers(self) -> Mapping[Output, tuple[int, ...]]:
        """The layers that read each output, if they compute something that counts: in the region, Results, Assigns."""
        used = _used(self.model, self.results)
        readers = {output: [id for id, _ in ids if id in used] for output, ids in self.model.readers.items()}
        return {output: tuple(ids) for output, ids in readers.items() if ids}

    @cached_property
    def cuts(self) -> Mapping[int, int]:
        """The positions at which the order can be cut, each with the number of values that cross it.

        A position is missing if a value that crosses it is not known.
        """
        last: dict[Output, int] = {}
        position = {id: at for at, id in enumerate(self.layers)}
        for output, readers in self._readers.items():
            if output[0] in position:
                last[output] = max(position.get(id, len(self.layers)) for id in readers)
        crossing, unknown = [0] * (len(self.layers) + 2), [0] * (len(self.layers) + 2)
        for output, end in last.items():
            begin = position[output[0]] + 1
            for counts in (crossing, unknown) if output not in self.known else (crossing,):
                counts[begin] += 1
                counts[end + 1 if end < len(self.layers) else end] -= 1
        cuts: dict[int, int] = {}
        total = hidden = 0
        for at in range(len(self.layers)):
            total, hidden = total + crossing[at], hidden + unknown[at]
            if at and not hidden:
                cuts[at] = total
        return cuts

    def part(self, begin: int = 0, end: int | None = None) -> Part | None:
        """Return the part from position ``begin`` up to ``end``, or None if a value that enters it is not known.

        The variables of a ReadValue in the part are kept if the part also computes what is assigned to them. Otherwise,
        the values of the ReadValue enter the part as inputs. Outputs of the part that are not known are left out.
        """
        inside = self._with_variables(self.layers[begin:end])
        entering = dict.fromkeys(
            feed
            for id in self.model.layers
            if id in inside
            for feed in self.model.feeds[id]
            if feed is not None and feed[0] not in inside and feed[0] not in self._constants
        )
        if any(feed not in self.known for feed in entering):
            return None
        leaving = [
            output
            for output, readers in self._readers.items()
            if output[0] in inside and output in self.known and any(id not in inside for id in readers)
        ]
        if not leaving:
            return None
        model = cut(self.model, inside, leaving, self.values)
        by_name = {self.model.output_name(*output): output for output in entering}
        inputs = tuple(by_name[parameter.name] for parameter in model.parameters)
        return Part(model, inputs, tuple(leaving))

    def _with_variables(self, layers: Sequence[int]) -> set[int]:
        """Return the layers without each ReadValue whose variable is assigned elsewhere, and with the other Assigns."""
        inside, every = set(layers), self.model.layers
        assigns: dict[str | None, list[int]] = {}
        for id, layer in every.items():
            if layer.type == "Assign":
                assigns.setdefault(layer.attributes.get("variable_id"), []).append(id)
        for id in layers:
            if every[id].type == "ReadValue":
                own = assigns.get(every[id].attributes.get("variable_id"), [])
                feeds = {feed[0] for assign in own for feed in self.model.feeds[assign] if feed is not None}
                if feeds <= inside | self._constants:
                    inside.update(own)
                else:
                    inside.discard(id)
        return inside


def _used(model: Model, results: Sequence[int]) -> set[int]:
    """Return the layers that some Results depend on, also through a variable: in this run or in the next ones."""
    assigns = {id: layer.attributes.get("variable_id") for id, layer in model.layers.items() if layer.type == "Assign"}
    used: set[int] = set()
    ends = set(results)
    while ends:
        used |= ends.union(*(nx.ancestors(model.links, id) for id in ends))
        read = {model.layers[id].attributes.get("variable_id") for id in used if model.layers[id].type == "ReadValue"}
        ends = {id for id, variable in assigns.items() if variable in read and id not in used}
    return used
