"""The values that the candidate has shown in a sample, until the judge has read them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from irrun.debug.shelf import Kept
from irrun.engines import Place

__all__ = ["Shown"]


@dataclass
class Shown:
    """The inner values of a candidate, by place in the reference and iteration, and the ordinals of those to judge.

    An engine that shows values of several copies of a model repeats, for each copy, the values that its layers read:
    those of another copy may have other roundings.
    """

    ordinals: dict[tuple[Place, int], int] = field(default_factory=dict)
    _values: dict[tuple[Place, int], Kept] = field(default_factory=dict)
    _repeated: dict[tuple[int, Place], Kept] = field(default_factory=dict)
    _copies: dict[Place, int] = field(default_factory=dict)
    _changed: dict[Place, np.ndarray] = field(default_factory=dict)

    def add(self, place: Place, iteration: int, copy: int, kept: Kept, ordinal: int | None) -> None:
        """Keep a value. Without an ``ordinal``, it is there for the layers that read it, and is not judged itself."""
        self._values[place, iteration] = kept
        self._copies[place] = copy
        if ordinal is not None:
            self.ordinals[place, iteration] = ordinal

    def repeat(self, place: Place, copy: int, kept: Kept) -> None:
        """Keep a value of another copy for the layers of this ``copy`` that read it."""
        self._repeated[copy, place] = kept

    def change(self, place: Place, array: np.ndarray) -> None:
        """Keep a value that follows from other constants than that of the reference, for all layers that read it."""
        self._changed[place] = array

    def changed(self, place: Place) -> np.ndarray | None:
        """Return a value that follows from other constants than that of the reference; None if it does not."""
        return self._changed.get(place)

    def value(self, place: Place, iteration: int) -> np.ndarray | None:
        """Return a value, and forget it; None if the candidate has not shown it."""
        kept = self._values.pop((place, iteration), None)
        return None if kept is None else kept.take()

    def copy(self, place: Place) -> int:
        """Return the number of the copy that has shown a place, by default 0."""
        return self._copies.get(place, 0)

    def read(self, copy: int, place: Place) -> np.ndarray | None:
        """Return what layers have read from ``place`` in a copy that has a value of its own there, else None."""
        kept = self._repeated.get((copy, place))
        return None if kept is None else kept.array()

    def drop(self) -> None:
        """Forget all values."""
        for kept in (*self._values.values(), *self._repeated.values()):
            kept.drop()
        self._values.clear()
        self._repeated.clear()
        self._changed.clear()
        self.ordinals.clear()
