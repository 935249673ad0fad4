"""Groups of layers: what a drawing shows as one node until it is opened.

Layers are grouped by the prefixes of their names, ``/model/layers.0/mlp/MatMul`` in ``model``, ``layers``, ``0`` and
``mlp``. Where names have no such structure, or a group has very many members, runs of the topological order are groups.
The layers of a body are a group in the group of their loop.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count, groupby
from typing import Final, Literal

import networkx as nx

from irrun.model import is_constant
from irrun.report.entries import Entries
from irrun.report.untangle import ordered, untangled

__all__ = ["Group", "GroupKind", "Tree"]

GroupKind = Literal["prefix", "run", "layer", "body"]
"""A common prefix of names, a run of the topological order, a layer that has bodies, or one of these bodies."""

_MAX_SHOWN_MEMBERS: Final = 80
"""The most members of a group that a drawing shows at once; more are divided into runs."""
_RUN: Final = 40
"""Members of a run: few enough to be read, so many that 10,000 layers need two levels."""
_MIN_GROUP_LAYERS: Final = 3
"""The fewest layers of a group by name. A frame around two layers would say less than it costs to look at."""
_WHOLE: Final = 0.8
"""The share of a model's layers that makes a group by name the model itself, as ``__module`` in PyTorch's models."""
_DEPTH: Final = 12
"""The most levels of groups by name: a hostile name may have thousands of separators."""
_PIECE: Final = "\0"
"""What separates the name of a group from the number of a piece of it. No name in XML holds it."""
_MAX_TYPES: Final = 4
"""The most types of a label."""
_PART: Final = re.compile(r"[/.]+")
_MAX_LABEL_CHARS: Final = 60
"""The most characters of a label."""


@dataclass(slots=True, eq=False)
class Group:
    """A group of layers and of other groups, its ``members``: numbers below ``len(entries)`` are those of layers.

    ``owner`` is the number of the layer with the body, for the kinds ``layer`` and ``body``, and otherwise -1.
    """

    label: str
    kind: GroupKind
    owner: int = -1
    members: list[int] = field(default_factory=list)


class Tree:
    """The groups of a model. ``groups[0]`` is the model itself; the number of a group follows those of the layers."""

    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.groups: list[Group] = [Group("", "body")]
        self._heads: dict[int, int] = {}  # the number of the group of each layer that has bodies
        for scope in entries.scopes:
            group = 0 if scope.owner < 0 else self._body(scope.owner, scope.tag)
            self._fill(group, sorted(scope.numbers.values(), key=entries.ranks.__getitem__))
        for group in range(len(self.groups)):
            self._divide(group)
        self.parents = [-1] * (len(entries) + len(self.groups))
        """The number of the group that holds each layer and each group; -1 for the model itself."""
        for number, group in enumerate(self.groups):
            for member in group.members:
                self.parents[member] = len(entries) + number

    def _add(self, parent: int, group: Group) -> int:
        """Add a group as the last member of another one, and return its position among the groups."""
        self.groups.append(group)
        self.groups[parent].members.append(len(self.entries) + len(self.groups) - 1)
        return len(self.groups) - 1

    def _body(self, owner: int, tag: str) -> int:
        """Return the position of the group for a body of a layer."""
        return self._add(self._heads[owner], Group(tag, "body", owner))

    # -- groups by name -------------------------------------------------------------------------

    def _fill(self, group: int, numbers: Sequence[int]) -> None:
        """Put the layers of a model or body into a group, in topological order, and into groups by name inside it."""
        entries, hidden = self.entries, self.entries.hidden
        parts = {n: _parts(entries[n].layer.name) for n in numbers if not hidden[n]}
        homes: dict[int, int] = {}
        waiting = [(group, list(parts), 0)]
        while waiting:
            parent, members, depth = waiting.pop()
            buckets = _buckets(members, parts, depth)
            if 0 < sum(map(len, buckets.values())) < len(members) or len(buckets) > 1:
                buckets = self._untangled(members, buckets, parts, depth)
            whole = self._whole(buckets, len(parts)) if parent == group and depth < _DEPTH else None
            if whole is not None:  # the others stay beside the groups in it
                for number in members:
                    if parts[number][depth : depth + 1] != (whole,):
                        parts[number] = (*parts[number][:depth], whole, *parts[number][depth:])
                waiting.append((parent, members, depth + 1))
                continue
            if parent != group and len(buckets) == 1 and len(next(iter(buckets.values()))) == len(members):
                self.groups[parent].label = _label(f"{self.groups[parent].label}/{next(iter(buckets))}")
                waiting.append((parent, members, depth + 1))
                continue
            for number in members:
                bucket = buckets.get(parts[number][depth], []) if len(parts[number]) > depth else []
                if len(bucket) < _MIN_GROUP_LAYERS or depth >= _DEPTH:
                    self._place(number, parent, homes)
                elif bucket[0] == number:
                    label = self._title(parts[number][: depth + 1], bucket)
                    waiting.append((self._add(parent, Group(label, "prefix")), bucket, depth + 1))
        self._place_hidden(group, numbers, homes)

    @staticmethod
    def _whole(buckets: dict[str, list[int]], count: int) -> str | None:
        """Return the part of names that makes nearly all of ``count`` layers a group: it is the model itself."""
        return next((part for part, bucket in buckets.items() if len(bucket) > _WHOLE * count), None)

    def _title(self, parts: tuple[str, ...], numbers: Sequence[int]) -> str:
        """Return the label of layers with a common beginning of their names.

        It is the last part: ``attention``; with the part before it if it is a number: ``layer.3``; and the sequence of
        types if it is the name that a converter gives to a layer by itself: ``Multiply_9903``.
        """
        *before, last = (part.partition(_PIECE)[0] for part in parts)
        if _is_automatic(last, [self.entries[number].layer.type for number in numbers]):
            return self._sequence(numbers)
        return _label(f"{before[-1]}.{last}" if last.isdigit() and before else last)

    def _sequence(self, numbers: Sequence[int]) -> str:
        """Return the types of layers in their order: ``Convolution → Add → ReLU``, of many the first and the last."""
        types = [type for type, _ in groupby(self.entries[number].layer.type for number in numbers)]
        return _label(" → ".join(types) if len(types) <= _MAX_TYPES else f"{types[0]} → {types[1]} … {types[-1]}")

    def _untangled(
        self, members: Sequence[int], buckets: dict[str, list[int]], parts: dict[int, tuple[str, ...]], depth: int
    ) -> dict[str, list[int]]:
        """Return the buckets of a level with each layer where its data comes from, and in order: see ``untangle``.

        The parts of the names of layers that change their bucket are changed as well.
        """
        first = {number: bucket[0] for bucket in buckets.values() for number in bucket}
        groups = {number: first.get(number, number) for number in members}
        moved = untangled(members, groups, self._producers, self.entries.ranks.__getitem__)
        homes = {number: parts[number] for number in groups.values()}
        for number in members:
            home = homes[moved[number]]
            if moved[number] != groups[number] and len(home) > depth:
                parts[number] = (*home[: depth + 1], parts[number][-1])
        buckets = _buckets(members, parts, depth)
        first = {number: bucket[0] for bucket in buckets.values() for number in bucket}
        pieces = ordered(members, {number: first.get(number, number) for number in members}, self._producers)
        for bucket in buckets.values():
            numbers: dict[int, int] = {}
            for number in bucket:
                if piece := numbers.setdefault(pieces[number], len(numbers)):
                    name = f"{parts[number][depth]}{_PIECE}{piece}"
                    parts[number] = (*parts[number][:depth], name, *parts[number][depth + 1 :])
        return _buckets(members, parts, depth)

    def _producers(self, number: int) -> list[int]:
        return [feed[0] for feed in self.entries.feeds(self.entries[number]) if feed is not None]

    def _place(self, number: int, parent: int, homes: dict[int, int]) -> None:
        """Put a layer into a group. A layer with bodies gets a group of its own, whose first member it is."""
        homes[number] = parent
        layer = self.entries[number].layer
        if layer.bodies:
            parent = self._heads[number] = self._add(parent, Group(_label(layer.name or layer.type), "layer", number))
        self.groups[parent].members.append(number)

    def _place_hidden(self, group: int, numbers: Sequence[int], homes: dict[int, int]) -> None:
        """Put constants, and the layers computed from them alone, into the groups of their first consumers."""
        for number in reversed(numbers):  # consumers first
            if self.entries.hidden[number]:
                self._place(number, homes.get(number, group), homes)
            for feed in self.entries.feeds(self.entries[number]):
                if feed is not None and self.entries.hidden[feed[0]]:
                    homes[feed[0]] = homes[number]

    # -- large groups ---------------------------------------------------------------------------

    def _divide(self, position: int) -> None:
        """Divide the members of a large group into runs of the topological order, on several levels if need be."""
        group, entries = self.groups[position], self.entries
        if group.kind == "layer" or sum(map(self._is_shown, group.members)) <= _MAX_SHOWN_MEMBERS:
            return
        members = self._sorted(group.members)
        while sum(map(self._is_shown, members)) > _MAX_SHOWN_MEMBERS:
            runs: list[list[int]] = [[]]
            shown = 0
            for member in members:
                if shown == _RUN and self._is_shown(member):
                    runs.append([])
                    shown = 0
                runs[-1].append(member)
                shown += self._is_shown(member)
            members = []
            for run in runs:
                self.groups.append(Group(self._span(run), "run", -1, run))
                members.append(len(entries) + len(self.groups) - 1)
        group.members = members

    def _sorted(self, members: Sequence[int]) -> list[int]:
        """Return members of a group in topological order, each constant before its first consumer."""
        homes = {layer: member for member in members for layer in self._layers(member)}
        graph = nx.DiGraph()
        graph.add_nodes_from(member for member in members if self._is_shown(member))
        first: dict[int, int] = {}
        for layer, member in homes.items():
            if not self.entries.hidden[layer]:
                feeds = [
                    homes[other]
                    for other in self._producers(layer)
                    if not self.entries.hidden[other] and other in homes
                ]
                graph.add_edges_from((other, member) for other in feeds if other != member)
        order = nx.lexicographical_topological_sort(graph, key=lambda member: (self._rank(member, first), member))
        places = {member: place for place, member in enumerate(order)}
        for layer in sorted(homes, key=self.entries.ranks.__getitem__, reverse=True):
            for other in self._producers(layer):
                if other in homes and not self._is_shown(homes[other]) and homes[layer] in places:
                    places[other] = min(places.get(other, len(homes)), places[homes[layer]])
        return sorted(members, key=lambda member: (places.get(member, len(homes)), self._is_shown(member)))

    def _layers(self, number: int) -> Iterator[int]:
        """Yield the layers of a group, without those of bodies, or the layer itself."""
        waiting = [number]
        while waiting:
            member = waiting.pop()
            if member < len(self.entries):
                yield member
            else:
                group = self.groups[member - len(self.entries)]
                waiting += [group.owner] if group.kind == "layer" else group.members

    def _is_shown(self, member: int) -> bool:
        return member >= len(self.entries) or not self.entries.hidden[member]

    def _rank(self, member: int, first: dict[int, int]) -> int:
        """Return the place of a member in the topological order: for a group, that of its first layer."""
        if member < len(self.entries):
            return self.entries.ranks[member]
        if member not in first:
            group = self.groups[member - len(self.entries)]
            inner = [group.owner] if group.kind == "layer" else group.members
            first[member] = min((self._rank(m, first) for m in inner), default=0)
        return first[member]

    def _span(self, run: Sequence[int]) -> str:
        """Return the label of a run: the names of its first and last members; their types if a converter named them."""
        shown = [member for member in run if self._is_shown(member)] or run
        if all(member < len(self.entries) and self._is_automatic(member) for member in (shown[0], shown[-1])):
            return self._sequence([member for member in shown if member < len(self.entries)])
        ends = [self._name(shown[0]).split(" … ")[0], self._name(shown[-1]).split(" … ")[-1]]
        return " … ".join(_label(end, _MAX_LABEL_CHARS // 2) for end in ends)

    def _is_automatic(self, member: int) -> bool:
        layer = self.entries[member].layer
        return _is_automatic(layer.name, [layer.type])

    def _name(self, member: int) -> str:
        if member >= len(self.entries):
            return self.groups[member - len(self.entries)].label
        layer = self.entries[member].layer
        return layer.name or layer.type

    # -- what to show ---------------------------------------------------------------------------

    def opened(self, most: int) -> set[int]:
        """Return the numbers of the groups to open at first, so that at most ``most`` nodes are visible.

        Groups near the model itself are opened first, and of these the small ones. The model itself is always open, and
        the Const layers are left out.
        """
        opened = {len(self.entries)}
        tie = count()
        waiting: list[tuple[int, int, int, int]] = []

        def consider(number: int, depth: int) -> int:
            shown = [m for m in self.groups[number - len(self.entries)].members if self._is_shown(m)]
            for member in shown:
                if member >= len(self.entries):
                    size = sum(map(self._is_shown, self.groups[member - len(self.entries)].members))
                    heappush(waiting, (depth, size, next(tie), member))
            return len(shown)

        visible = consider(len(self.entries), 0)
        while waiting:
            depth, size, _, number = heappop(waiting)
            if visible - 1 + size <= most:
                opened.add(number)
                visible += consider(number, depth + 1) - 1
        return opened

    def visible(self, opened: set[int]) -> Iterator[int]:
        """Yield the numbers of the layers and groups that a drawing shows, if these groups are open."""
        waiting = [len(self.entries)]
        while waiting:
            number = waiting.pop()
            if number in opened:
                waiting += reversed(self.groups[number - len(self.entries)].members)
            elif self._is_shown(number):
                yield number

    def summary(self, number: int, most: int = 3) -> str:
        """Return the most frequent types of the layers in a group, without constants: ``Convolution ×2, ReLU``."""
        types: Counter[str] = Counter()
        waiting = [number]
        while waiting:
            member = waiting.pop()
            if member >= len(self.entries):
                waiting += self.groups[member - len(self.entries)].members
            elif not is_constant(self.entries[member].layer):
                types[self.entries[member].layer.type] += 1
        return ", ".join(f"{type} ×{n}" if n > 1 else type for type, n in types.most_common(most))


def _parts(name: str) -> tuple[str, ...]:
    """Return the parts of a name that are names of groups: all but the last."""
    return tuple([part for part in _PART.split(name) if part][:_DEPTH])


def _buckets(members: Sequence[int], parts: dict[int, tuple[str, ...]], depth: int) -> dict[str, list[int]]:
    """Return the layers whose names have a part at ``depth``, by this part."""
    buckets: dict[str, list[int]] = {}
    for number in members:
        if len(parts[number]) > depth:
            buckets.setdefault(parts[number][depth], []).append(number)
    return buckets


def _is_automatic(name: str, types: Sequence[str]) -> bool:
    """Return whether a converter has named a layer after one of these types: ``Multiply_9903``."""
    type, _, number = name.rpartition("_")
    return number.isdigit() and type.lower() in {type.lower() for type in types}


def _label(text: str, most: int = _MAX_LABEL_CHARS) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"
