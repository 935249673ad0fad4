"""Correct groups whose names do not say where their layers are.

A converter names a layer after the module that computed it. If a module is used in many places, such as one activation
for a whole network, then all these places are in one group, and the data runs into this group and out of it again and
again. Such a group is divided into its connected parts, and each part but the largest joins the group that feeds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import networkx as nx

__all__ = ["ordered", "untangled"]

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


def ordered(members: Sequence[int], groups: Mapping[int, int], links: Callable[[int], Iterable[int]]) -> dict[int, int]:
    """Return groups as ``untangled`` does, but divided so that no path leaves a group and comes back to it.

    ``members`` are in topological order. Each part of a group that is divided is a group of its own.
    """
    first: dict[int, int] = {}
    for member in members:
        first.setdefault(groups[member], member)
    groups = {member: first[groups[member]] for member in members}
    reads = {member: [other for other in links(member) if other in groups] for member in members}
    divided: set[int] = set()
    while cyclic := _cyclic(reads, groups) - divided:
        if len(divided) == _MAX_ROUNDS:
            return {member: member if group in cyclic else group for member, group in groups.items()}
        group = min(cyclic)
        divided.add(group)
        _split(group, reads, groups)
    return groups


def _quotient(reads: Mapping[int, Sequence[int]], node: Callable[[int], int]) -> nx.DiGraph:
    """Return the graph of the nodes that stand for layers."""
    quotient = nx.DiGraph()
    quotient.add_nodes_from(map(node, reads))
    quotient.add_edges_from(
        (node(other), node(member))
        for member, others in reads.items()
        for other in others
        if node(other) != node(member)
    )
    return quotient


def _cyclic(reads: Mapping[int, Sequence[int]], groups: Mapping[int, int]) -> set[int]:
    """Return the groups of several layers that are on a cycle of groups."""
    quotient = _quotient(reads, groups.__getitem__)
    components = nx.strongly_connected_components(quotient)
    cyclic = {group for component in components if len(component) > 1 for group in component}
    return {group for member, group in groups.items() if group != member and group in cyclic}


def _split(group: int, reads: Mapping[int, Sequence[int]], groups: dict[int, int]) -> None:
    """Divide a group by how often the data has left it: a part holds the layers with the same number of returns.

    The layers of a cycle that does not end before another group is divided become groups of their own.
    """
    own = {member for member in reads if groups[member] == group}
    places = {member: place for place, member in enumerate(reads)}
    graph = _quotient(reads, lambda member: -1 - member if member in own else groups[member])
    condensed = nx.condensation(graph)
    returns: dict[int, int] = {}  # the most returns on a path to a component; -1 if no path has been in the group
    inside: set[int] = set()  # the components that are a layer of the group
    parts: dict[int, list[int]] = {}
    for component in nx.topological_sort(condensed):
        nodes = condensed.nodes[component]["members"]
        layers = [-1 - node for node in nodes if node < 0]
        before = list(condensed.predecessors(component))
        if layers:
            returns[component] = max(
                (returns[other] + (other not in inside and returns[other] >= 0) for other in before), default=0
            )
            returns[component] = max(0, returns[component])
        else:
            returns[component] = max((returns[other] for other in before), default=-1)
        if len(nodes) > 1:
            groups.update({layer: layer for layer in layers})
        elif layers:
            inside.add(component)
            parts.setdefault(returns[component], []).extend(layers)
    for part in parts.values():
        groups.update(dict.fromkeys(part, min(part, key=places.__getitem__)))


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
