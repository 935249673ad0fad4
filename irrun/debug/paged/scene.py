"""The values of both models for one token: what a search for a cause looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from irrun.debug.paged.calls import Call, Plan
from irrun.debug.paged.sides import ATTENTION, STATES, Paged, Stateful, replay
from irrun.model import Layer, Model

__all__ = ["RELATIVE", "Scene", "near"]

RELATIVE: Final = 1e-4
"""The largest difference that is no fault, as a part of the largest expected value."""


def near(found: np.ndarray, expected: np.ndarray, relative: float = RELATIVE) -> bool:
    """Return whether two arrays of equal size agree."""
    largest = max(float(np.abs(expected).max(initial=0)), 1e-6)
    return bool(np.abs(found.ravel() - expected.ravel()).max(initial=0) <= relative * largest)


class Scene:
    """The values of a token: of the paged model in its call, and of the stateful model for the same prompt."""

    def __init__(
        self,
        stateful: Stateful,
        paged: Paged,
        plan: Plan,
        caches: Mapping[str, np.ndarray],
        at: tuple[int, int, int],
        slots: int,
    ) -> None:
        """``at`` is the number of the call, that of the piece in the call, and the position of the token."""
        self.stateful, self.paged, self.plan, self.slots = stateful, paged, plan, slots
        self._before = caches
        self.number, self.part, self.position = at
        self.call: Call = plan.calls[self.number]
        self.piece = self.call.pieces[self.part]
        self.prompt = plan.prompts[self.piece.sequence]
        mine, theirs = paged.model.model, stateful.model.model
        self.shared = {layer.name: layer for layer in theirs.layers.values()}
        passed = dict(replay(paged, plan.calls[: self.number], caches))
        self.caches = passed or {name: array.copy() for name, array in paged.model.state.items()}
        """The caches before the call."""
        self.caches |= {name: array for name, array in self.call.inputs.items() if name in self.caches}
        self.taps: Mapping[str, np.ndarray] = paged.run(self.call, passed, _names(mine)).taps
        self.inner = stateful.run(self.prompt[: self.position + 1], _names(theirs))
        self.first = sum(piece.end - piece.begin for piece in self.call.pieces[: self.part])
        """The first row of the piece in the call."""

    def last(self) -> Scene:
        """Return the values of the last token of the piece."""
        at = self.number, self.part, self.piece.end - 1
        return Scene(self.stateful, self.paged, self.plan, self._before, at, self.slots)

    @property
    def row(self) -> int:
        """The row of the token in the call."""
        return self.first + self.position - self.piece.begin

    def found(self, layer: Layer) -> np.ndarray | None:
        """Return the value of a layer of the paged model for the token, [elements]."""
        array, tokens = self.taps.get(layer.name), sum(piece.end - piece.begin for piece in self.call.pieces)
        if array is None or array.dtype.kind != "f" or not array.ndim or array.shape[0] != tokens:
            return None
        return array[self.row].ravel()

    def expected(self, name: str) -> list[np.ndarray]:
        """Return the value of a layer of the stateful model for the token, [elements], along each axis of tokens."""
        array, length = self.inner.get(name), self.position + 1
        if array is None or array.dtype.kind != "f" or array.ndim < 2 or array.shape[0] != 1:
            return []
        axes = [axis for axis in range(1, array.ndim) if array.shape[axis] == length]
        return [np.take(array[0], -1, axis - 1).ravel() for axis in axes]

    def right(self, layer: Layer) -> bool | None:
        """Return whether a layer of the paged model has the expected value, or None if that is not known."""
        found = self.found(layer)
        if found is None or layer.name not in self.shared:
            return None
        candidates = [row for row in self.expected(layer.name) if row.size == found.size]
        return any(near(found, row) for row in candidates) if candidates else None

    def same(self, row: np.ndarray) -> list[str]:
        """Return the layers of the stateful model whose value for the token is a row, the last one first."""
        model = self.stateful.model.model
        named = [model.layers[id].name for id in reversed(model.order)]
        return [name for name in named if any(r.size == row.size and near(row, r) for r in self.expected(name))]

    def ordered(self) -> Iterator[Layer]:
        """Yield the layers of the paged model in the order of the graph."""
        model = self.paged.model.model
        return (model.layers[id] for id in model.order)

    def behind(self, layer: Layer) -> tuple[list[Layer], list[Layer]]:
        """Return the layers with caches, and all others, that feed a layer through layers without expected values."""
        model = self.paged.model.model
        special, others, waiting, seen = [], [], [layer], {layer.id}
        while waiting:
            for source in _sources(model, waiting.pop()):
                if source.id in seen:
                    continue
                seen.add(source.id)
                if source.type == ATTENTION or source.type in STATES:
                    special.append(source)
                    continue
                others.append(source)
                if self.right(source) is None:
                    waiting.append(source)
        return special, others


def _sources(model: Model, layer: Layer) -> list[Layer]:
    return [model.layers[feed[0]] for feed in model.feeds[layer.id] if feed is not None]


def _names(model: Model) -> list[str]:
    silent = ("Parameter", "Const", "Constant", "Result", "Assign")
    return [layer.name for layer in model.layers.values() if layer.type not in silent]
