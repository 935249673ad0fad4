"""The values of both models for one token: what a search for a cause looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from irrun.debug.paged.calls import Call, Plan
from irrun.debug.paged.proof import RELATIVE, Correction
from irrun.debug.paged.sides import ATTENTION, STATES, Paged, Stateful, replay, rows
from irrun.debug.paged.twins import twins
from irrun.diagnostics import IrrunError
from irrun.model import Layer, Model

__all__ = ["Scene", "near"]


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
        allowed: float,
    ) -> None:
        """``at`` is the number of the call, that of the piece in the call, and the position of the token.

        ``allowed`` is the largest difference of a logit that is no fault.
        """
        self.stateful, self.paged, self.plan, self.slots, self.allowed = stateful, paged, plan, slots, allowed
        self._before, self._tries, self._may_cross = caches, [_TRIES], True
        self.number, self.part, self.position = at
        self.call: Call = plan.calls[self.number]
        self.piece = self.call.pieces[self.part]
        self.prompt = plan.prompts[self.piece.sequence]
        mine, theirs = paged.model.model, stateful.model.model
        passed = dict(replay(paged, plan.calls[: self.number], caches))
        self.caches = passed or {name: array.copy() for name, array in paged.model.state.items()}
        """The caches before the call."""
        self.caches |= {name: array for name, array in paged.named(self.call.inputs).items() if name in self.caches}
        done: Any = paged.run(self.call, passed, _names(mine))
        self.taps: Mapping[str, np.ndarray] = done.taps
        self.difference = self._difference(done)
        """The largest difference of a logit of the token."""
        self.inner = stateful.run(self.prompt[: self.position + 1], _names(theirs))
        self._names = mine.unique_names, theirs.unique_names
        self.first = sum(piece.end - piece.begin for piece in self.call.pieces[: self.part])
        """The first row of the piece in the call."""

    def last(self) -> Scene:
        """Return the values of the last token of the piece."""
        at = self.number, self.part, self.piece.end - 1
        return Scene(self.stateful, self.paged, self.plan, self._before, at, self.slots, self.allowed)

    @property
    def row(self) -> int:
        """The row of the token in the call."""
        return self.first + self.position - self.piece.begin

    def tap(self, layer: Layer) -> np.ndarray | None:
        """Return the value of a layer of the paged model in the call, or None if it has none."""
        return self.taps.get(self._names[0][layer.id])

    def wanted(self, layer: Layer) -> np.ndarray | None:
        """Return the value of a layer of the stateful model for the prompt up to the token, or None if it has none."""
        return self.inner.get(self._names[1][layer.id])

    def found(self, layer: Layer) -> np.ndarray | None:
        """Return the value of a layer of the paged model for the token, [elements]."""
        return self._row(self.tap(layer))

    def _row(self, array: np.ndarray | None) -> np.ndarray | None:
        tokens = sum(piece.end - piece.begin for piece in self.call.pieces)
        if array is None or array.dtype.kind != "f" or not array.ndim or array.shape[0] != tokens:
            return None
        return array[self.row].ravel()

    def expected(self, layer: Layer) -> list[np.ndarray]:
        """Return the value of a layer of the stateful model for the token, [elements], along each axis of tokens."""
        array, length = self.wanted(layer), self.position + 1
        if array is None or array.dtype.kind != "f" or array.ndim < 2 or array.shape[0] != 1:
            return []
        axes = [axis for axis in range(1, array.ndim) if array.shape[axis] == length]
        return [np.take(array[0], -1, axis - 1).ravel() for axis in axes]

    @cached_property
    def twins(self) -> Mapping[int, int]:
        """The ids of the layers of the stateful model, by the ids of their counterparts in the paged one."""
        return twins(self.paged.model.model, self.stateful.model.model)

    def twin(self, layer: Layer) -> Layer | None:
        """Return the counterpart of a layer of the paged model in the stateful one, or None."""
        id = self.twins.get(layer.id)
        return None if id is None else self.stateful.model.model.layers[id]

    def right(self, layer: Layer) -> bool | None:
        """Return whether a layer of the paged model has the expected value, or None if that is not known.

        A value is also right if it is that of another layer of the type whose counterpart has another value: layers
        that a graph does not tell apart may be paired crosswise. Names tell them apart.
        """
        is_equal = self._equal.get(layer.id)
        if is_equal is not False or not self._may_cross:
            return is_equal
        found, twin = self.found(layer), self.twin(layer)
        assert found is not None
        assert twin is not None
        return any(other.type == twin.type and _among(found, self.expected(other)) for other in self._crossed)

    @cached_property
    def _equal(self) -> Mapping[int, bool]:
        """Whether a layer of the paged model has the value of its counterpart, by the ids of those that are known."""
        equal: dict[int, bool] = {}
        for layer in self.ordered():
            found, twin = self.found(layer), self.twin(layer)
            rows = [] if found is None or twin is None else [r for r in self.expected(twin) if r.size == found.size]
            if found is not None and rows:
                equal[layer.id] = _among(found, rows)
        return equal

    @cached_property
    def _crossed(self) -> list[Layer]:
        """The layers of the stateful model whose counterparts have other values."""
        layers = self.stateful.model.model.layers
        return [layers[self.twins[id]] for id, is_equal in self._equal.items() if not is_equal]

    def same(self, row: np.ndarray) -> list[str]:
        """Return the layers of the stateful model whose value for the token is a row, the last one first."""
        model = self.stateful.model.model
        layers = [model.layers[id] for id in reversed(model.order)]
        return [self._names[1][layer.id] for layer in layers if _among(row, self.expected(layer))]

    @property
    def agrees(self) -> bool:
        """Whether the token has the logits of the stateful model."""
        return self.difference <= self.allowed

    def corrected(self, correct: Correction, wrong: Layer | None = None) -> Scene | None:
        """Return the values after a correction of the paged model, if the token then agrees, or layer ``wrong`` does.

        Return None if neither does, the model cannot be corrected so, or ``_TRIES`` corrections were tried.
        """
        if not self._tries[0]:
            return None
        self._tries[0] -= 1
        name = None if wrong is None else self._names[0][wrong.id]
        try:
            paged = correct(self.paged)
            taps = [] if name is None else [name]
            done: Any = paged.run(self.call, replay(paged, self.plan.calls[: self.number], self._before), taps)
        except IrrunError:  # a correction may contradict another layer
            return None
        if not self._difference(done) <= self.allowed:
            row, twin = None if name is None else self._row(done.taps.get(name)), wrong and self.twin(wrong)
            if row is None or twin is None or not _among(row, self.expected(twin)):
                return None
        scene = self._of(paged)
        scene.twins, scene._may_cross, scene._tries = self.twins, self._may_cross, self._tries
        return scene

    def paired(self, by: str) -> Scene:
        """Return the same values, with layers paired by contents, places or names: see ``twins``."""
        scene = self._of(self.paged)
        scene.twins, scene._may_cross = twins(self.paged.model.model, self.stateful.model.model, by), by != "names"
        return scene

    def _of(self, paged: Paged) -> Scene:
        at = self.number, self.part, self.position
        return Scene(self.stateful, paged, self.plan, self._before, at, self.slots, self.allowed)

    def _difference(self, done: Any) -> float:
        """Return the largest difference of a logit of the token in the outputs of its call."""
        logits = rows(done[0], self.call)[self.part][self.position - self.piece.begin]
        wanted = self.stateful.logits(self.prompt, self.piece)[self.position - self.piece.begin]
        return float(np.abs(logits - wanted).max())

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


_TRIES = 48
"""The most corrections that are tried: each compiles the model and runs all calls."""


def _among(row: np.ndarray, rows: list[np.ndarray]) -> bool:
    """Return whether a row agrees with one of several."""
    return any(other.size == row.size and near(row, other) for other in rows)


def _sources(model: Model, layer: Layer) -> list[Layer]:
    return [model.layers[feed[0]] for feed in model.feeds[layer.id] if feed is not None]


def _names(model: Model) -> list[str]:
    silent = ("Parameter", "Const", "Constant", "Result", "Assign")
    return [model.unique_names[id] for id, layer in model.layers.items() if layer.type not in silent]
