"""The layers of a model and of all its bodies, numbered from 0, and the edges that a drawing shows between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from irrun.model import Layer, Model, is_constant

__all__ = ["Entries", "Entry", "Kind", "Link"]

Kind = Literal["data", "body", "back"]
"""An edge of the file, one that enters or leaves a body through its port map, or one to the next iteration."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A layer with its number. ``name`` is unique: the layer's own, behind those of the layers whose bodies hold it.

    ``scope`` is the number of the body that holds the layer, among ``Entries.scopes``; 0 is the model itself.
    """

    number: int
    layer: Layer
    model: Model
    name: str
    scope: int

    @property
    def line(self) -> int:
        """The line of the file on which the layer begins."""
        return self.model.source.line_of(self.layer.node)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The model, or a body of a layer: ``owner`` is the number of the layer, or -1, and ``tag`` names the body."""

    model: Model
    owner: int
    tag: str
    numbers: Mapping[int, int] = field(default_factory=dict)
    """The number of each layer of the model or body, by its id."""


Link = tuple[int, int, Kind]
"""The numbers of two layers, the second of which reads a value of the first."""


class Entries:
    """The layers of a model and of all its bodies. The layers of a body come after those of the model around it."""

    def __init__(self, model: Model) -> None:
        self.entries: list[Entry] = []
        self.scopes: list[Scope] = []
        waiting = [(model, -1, "", "")]
        for inner, owner, tag, prefix in waiting:
            scope = Scope(inner, owner, tag, {key: len(self.entries) + n for n, key in enumerate(inner.layers)})
            number = len(self.scopes)
            self.scopes.append(scope)
            for layer in inner.layers.values():
                name = prefix + inner.unique_names[layer.id]
                self.entries.append(Entry(len(self.entries), layer, inner, name, number))
                waiting += [(body, scope.numbers[layer.id], tag, f"{name}/") for tag, body in layer.bodies.items()]
        self._by_identity = {id(entry.layer): entry.number for entry in self.entries}

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __getitem__(self, number: int) -> Entry:
        return self.entries[number]

    def number(self, layer: Layer) -> int | None:
        """Return the number of a layer, or None for one that the planner has made."""
        return self._by_identity.get(id(layer))

    @cached_property
    def named(self) -> Mapping[str, int]:
        """The number of each layer by its unique name. Bodies may repeat a name, which then means the first."""
        names: dict[str, int] = {}
        for entry in self.entries:
            names.setdefault(entry.name, entry.number)
        return names

    def feeds(self, entry: Entry) -> list[tuple[int, int] | None]:
        """Return the number of the producer and the position of its output, for each input of a layer."""
        numbers = self.scopes[entry.scope].numbers
        return [None if feed is None else (numbers[feed[0]], feed[1]) for feed in entry.model.feeds[entry.layer.id]]

    @cached_property
    def ranks(self) -> list[int]:
        """The place of each layer in the topological order of its model or body. Layers on cycles come last."""
        ranks = [0] * len(self.entries)
        for scope in self.scopes:
            for rank, id in enumerate(dict.fromkeys((*scope.model.order, *scope.model.layers))):
                ranks[scope.numbers[id]] = rank
        return ranks

    @cached_property
    def hidden(self) -> list[bool]:
        """For each layer, whether a drawing leaves it out at first: it is a constant, or computed from constants alone.

        A layer that feeds a Result is never left out.
        """
        hidden = [False] * len(self.entries)
        for number in sorted(range(len(self.entries)), key=self.ranks.__getitem__):
            entry = self.entries[number]
            feeds = [feed for feed in self.feeds(entry) if feed is not None]
            if is_constant(entry.layer):
                hidden[number] = True
            elif feeds and entry.layer.type.lower() != "result" and not entry.layer.bodies:
                hidden[number] = all(hidden[producer] for producer, _ in feeds)
        for entry in self.entries:
            if entry.layer.type.lower() == "result":
                for feed in self.feeds(entry):
                    if feed is not None:
                        hidden[feed[0]] = False
        return hidden

    def links(self) -> Iterator[Link]:
        """Yield the edges to draw, one for each pair of layers and kind.

        An edge to an input that a layer passes into its bodies leads to the Parameters there, and an edge from an
        output that comes out of its bodies begins at the Results. Back edges lead from a Result to the Parameter of the
        next iteration.
        """
        seen: set[Link] = set()
        for entry in self.entries:
            for position, feed in enumerate(self.feeds(entry)):
                if feed is None:
                    continue
                for begin, end, kind in self._through(self.entries[feed[0]], feed[1], entry, position):
                    link: Link = (begin, end, kind)
                    if link not in seen:
                        seen.add(link)
                        yield link
            yield from self._back(entry)

    def _through(self, producer: Entry, output: int, reader: Entry, input: int) -> Iterator[Link]:
        begins = self._inside(producer, "output", output) or [producer.number]
        ends = self._inside(reader, "input", input) or [reader.number]
        for begin in begins:
            for end in ends:
                yield begin, end, "data" if (begin, end) == (producer.number, reader.number) else "body"

    def _inside(self, entry: Entry, kind: str, external: int) -> list[int]:
        """Return the numbers of the Parameters or Results of bodies that a port of a layer is connected with."""
        return self._mapped.get((entry.number, kind, external), []) if entry.layer.bodies else []

    @cached_property
    def _mapped(self) -> Mapping[tuple[int, str, int | None], list[int]]:
        """The Parameters and Results of bodies, by number of the layer, ``input`` or ``output``, and position."""
        mapped: dict[tuple[int, str, int | None], list[int]] = {}
        for scope in self.scopes[1:]:
            layer = self.entries[scope.owner].layer
            for item in layer.maps.get(scope.tag.replace("body", "port_map"), ()):
                if item.internal in scope.numbers:
                    mapped.setdefault((scope.owner, item.kind, item.external), []).append(scope.numbers[item.internal])
        return mapped

    def _back(self, entry: Entry) -> Iterator[Link]:
        for result, parameter in entry.layer.back_edges:
            for tag, body in entry.layer.bodies.items():
                if result in body.layers and parameter in body.layers:
                    numbers = self._body(entry.number, tag)
                    yield numbers[result], numbers[parameter], "back"

    def _body(self, owner: int, tag: str) -> Mapping[int, int]:
        return self._bodies[owner, tag].numbers

    @cached_property
    def _bodies(self) -> Mapping[tuple[int, str], Scope]:
        return {(scope.owner, scope.tag): scope for scope in self.scopes}
