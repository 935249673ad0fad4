"""The layers of a file as steps over numbered slots, in which ``irrun.planning.idioms`` finds patterns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irrun.inference.trace import Trace
from irrun.model import Layer
from irrun.opdef import Op

__all__ = ["FileGraph", "FileLayer"]


@dataclass(frozen=True, slots=True)
class FileLayer:
    """A layer of a file, the slots that it reads, -1 for an absent input, and those that it fills."""

    layer: Layer
    op: Op
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class FileGraph:
    """The layers of a model without its bodies. A layer whose operation irrun does not know is missing."""

    def __init__(self, trace: Trace) -> None:
        self.trace, model = trace, trace.model
        keys = [(id, position) for id, layer in model.layers.items() for position in range(len(layer.outputs))]
        slots = {key: slot for slot, key in enumerate(keys)}
        self._keys = keys
        self.layers = {
            id: FileLayer(
                model.layers[id],
                op,
                tuple(-1 if feed is None else slots.get(feed, -1) for feed in model.feeds[id]),
                tuple(slots[id, position] for position in range(len(model.layers[id].outputs))),
            )
            for id in model.order
            if (op := trace.ops.get(id)) is not None
        }
        self._makers = {slot: layer for layer in self.layers.values() for slot in layer.writes}

    @cached_property
    def names(self) -> dict[int, str]:
        """The unique name of each layer, by id."""
        return dict(self.trace.model.unique_names)

    def of(self, slot: int, *types: str) -> FileLayer | None:
        """Return the layer that fills a slot, or None if it has another type than ``types``."""
        made = self._makers.get(slot)
        return made if made is not None and (not types or made.op.type in types) else None

    def through(self, slot: int, *passed: str) -> int:
        """Return the slot from which layers of the types ``passed`` compute ``slot``, by their first inputs."""
        while (made := self.of(slot, *passed)) is not None and made.reads and made.reads[0] >= 0:
            slot = made.reads[0]
        return slot

    def contents(self, slot: int) -> np.ndarray | None:
        """Return the contents of a constant slot, None for any other."""
        value = self.trace.values.get(self._keys[slot]) if slot >= 0 else None
        return None if value is None else value.exact

    def number(self, slot: int) -> float | None:
        """Return the number that all elements of a constant slot are, None for any other slot."""
        array = self.contents(slot)
        if array is None or not array.size or array.dtype.kind in "OUT":
            return None
        first = array.reshape(-1)[0]
        return float(first) if (array == first).all() else None

    def same(self, a: int, b: int) -> bool:
        """Return whether two slots are the same slot or hold equal constants."""
        first, second = self.contents(a), self.contents(b)
        return a == b or (first is not None and second is not None and np.array_equal(first, second))

    def rank(self, slot: int) -> int | None:
        """Return the number of axes of a slot, or None if it is not known."""
        value = self.trace.values.get(self._keys[slot]) if slot >= 0 else None
        return None if value is None else value.shape.rank

    def type(self, slot: int) -> str:
        """Return the element type of a slot."""
        value = self.trace.values.get(self._keys[slot]) if slot >= 0 else None
        return "dynamic" if value is None else value.type.name

    def readers(self, slot: int) -> list[FileLayer]:
        """Return the layers that read a slot, once for each input."""
        ids = (id for id, _ in self.trace.model.readers.get(self._keys[slot], ()))
        return [self.layers[id] for id in ids if id in self.layers]

    def axes(self, slot: int, rank: int) -> list[int] | None:
        """Return the axes that a constant slot holds, counted from the first and sorted. None for any other slot."""
        array = self.contents(slot)
        return None if array is None else sorted({int(axis) % max(rank, 1) for axis in array.reshape(-1)})

    def __iter__(self) -> Iterator[FileLayer]:
        return iter(self.layers.values())

    def called(self, slot: int) -> str:
        """Return the name of the layer that fills a slot, in quotes."""
        made = self._makers.get(slot)
        return "nothing" if made is None else f'"{self.names[made.layer.id]}"'
