"""Correct groups whose names do not say where their layers are.

A converter names a layer after the module that computed it. If a module is used in many places, such as one activation
for a whole network, then all these places are in one group, and the data runs into this group and out of it again and
again. Such a group is divided into its connected parts, and each part but the largest joins the group that feeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import networkx as nx

__all__ = ["untangled"]

_MAX_ROUNDS: Final = 16
"""The most groups on one level that are divided: each round takes time in proportion to the links of the level."""


def untangled(
    members: Sequence[int],
    groups: Mapping[int, int],
    links: Callable[[int], Iterable[int]],
    rank: Callable[[int], int],
) -> dict[int, int]:
    """Return the corrected group of each member.

    ``members`` are numbers of layers, and ``groups`` maps each of them to a number that all members of its group share.
    ``links`` returns the layers that a layer reads, and ``rank`` its place in the topological order.
    """
    groups = dict(groups)
    reads = {member: [other for other in links(member) if other in groups] for member in members}
    divided: set[int] = set()
    for _ in range(_MAX_ROUNDS):
        hub = _hub(reads, groups, divided)
        if hub is None:
            break
        divided.add(hub)
        _divide(hub, reads, groups, rank)
    return groups


def _hub(reads: Mapping[int, Sequence[int]], groups: Mapping[int, int], divided: set[int]) -> int | None:
    """Return the group with the most neighbours on cycles of groups, without those that are ``divided`` already."""
    quotient = nx.DiGraph()
    for member, others in reads.items():
        quotient.add_edges_from((groups[other], groups[member]) for other in others if groups[other] != groups[member])
    best: tuple[int, int] | None = None
    for component in nx.strongly_connected_components(quotient):
        if len(component) > 1:
            inner = quotient.subgraph(component)
            for group in component - divided:
                degree = inner.in_degree(group) + inner.out_degree(group)
                best = max(best or (0, 0), (degree, group))
    return None if best is None or not best[0] else best[1]


def _divide(hub: int, reads: Mapping[int, Sequence[int]], groups: dict[int, int], rank: Callable[[int], int]) -> None:
    """Move each connected part of a group but the largest to the group of the last layer that it reads."""
    own = nx.Graph()
    for member, others in reads.items():
        if groups[member] == hub:
            own.add_node(member)
            own.add_edges_from((member, other) for other in others if groups[other] == hub)
    parts = sorted(nx.connected_components(own), key=lambda part: (-len(part), min(map(rank, part))))
    for part in sorted(parts[1:], key=lambda part: min(map(rank, part))):
        sources = [other for member in part for other in reads[member] if other not in part]
        if sources:
            home = groups[max(sources, key=rank)]
            for member in part:
                groups[member] = home
