"""The graphs of a campaign in a file, which processes with other copies of irrun read."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from irrun.growing import Graph, Grower
from irrun.growing.drafts import name_of, versions
from irrun.opdef import Op

__all__ = ["grown", "load", "save"]


class _Pickler(pickle.Pickler):
    """Writes operations by name: those of tables are no attributes of their modules."""

    def persistent_id(self, obj: Any) -> str | None:
        return name_of(obj) if isinstance(obj, type) and issubclass(obj, Op) else None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, pid: Any) -> type[Op]:
        return versions()[pid]


def grown(seed: int, count: int) -> dict[int, Graph]:
    """Return the first ``count`` graphs that ``irrun fuzz`` judges against an engine, by number."""
    grower = Grower(seed, for_engine=True)
    return {number: grower.grow(number) for number in range(count)}


def save(graphs: Mapping[int, Graph], path: Path) -> None:
    """Write graphs to a file, without what was built for them."""
    plain = {number: replace(graph, nodes=[replace(node) for node in graph.nodes]) for number, graph in graphs.items()}
    with path.open("wb") as file:
        _Pickler(file).dump(plain)


def load(path: Path) -> dict[int, Graph]:
    """Return the graphs in a file that ``save`` has written."""
    with path.open("rb") as file:
        return _Unpickler(file).load()
