"""The variables of a model, which keep their values from run to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

__all__ = ["Variables", "read_only"]


class _Grown(NamedTuple):
    """A value at the beginning of a buffer that has room for more along one axis. No value lies in the room."""

    buffer: np.ndarray
    value: np.ndarray
    """A view of ``buffer``, whose only values are this one and its beginnings."""
    axis: int

    def begins_with(self, array: np.ndarray, axis: int) -> bool:
        """Return whether ``array`` is ``value``, if perhaps another view of it, and may grow along ``axis``."""
        value = self.value
        if array is value:
            return axis == self.axis
        if array.base is not self.buffer or _address(array) != _address(value):
            return False
        return array.shape == value.shape and array.strides == value.strides and axis == self.axis


class Variables:
    """The variables of a model, which keep their values between runs. ReadValue reads them and Assign writes them.

    A value that is assigned in one run is read only in later runs. No run changes a value: whoever holds the array of
    a variable keeps what it held then, also if the variable has grown since.

    A cache is a variable of another kind: a Parameter whose array a layer overwrites (``Op.updates``). It has the name
    of the Parameter. Later runs write into its array, unless somebody has asked for the values (``shown``).
    """

    def __init__(self) -> None:
        self.values: dict[str, np.ndarray] = {}
        self._assigned: dict[str, np.ndarray] = {}
        self._grown: dict[str, _Grown] = {}
        """The buffers of ``values``, by variable. A run that appends to one takes it out."""
        self._appended: dict[str, _Grown] = {}
        """The buffers that runs have appended to and not yet committed."""
        self._caches: dict[str, np.ndarray] = {}
        """The caches among ``values`` as arrays that a run may write into."""
        self._updated: dict[str, np.ndarray] = {}
        """The caches that steps of the current run have returned."""
        self._lent: set[str] = set()
        """The caches into which the current run may write."""
        self._shown = False
        """Whether somebody may hold arrays of ``values``."""

    def read(self, id: str) -> np.ndarray | None:
        """Return the value of a variable, or None if no earlier run has assigned one."""
        return self.values.get(id)

    def assign(self, id: str, value: np.ndarray) -> None:
        """Set the value of a variable for the next run."""
        self._assigned[id] = value

    def appended(self, id: str, past: np.ndarray, pieces: Sequence[np.ndarray], axis: int) -> np.ndarray:
        """Return ``np.concatenate([past, *pieces], axis)``, which the run is going to assign to the variable ``id``.

        ``past`` is the value of the variable, or any other array. The result is a view of a buffer with room for later
        pieces. If ``past`` lies in such a buffer already, only the pieces are copied, behind it. Growing a value to n
        elements copies O(n) elements altogether.
        """
        axis %= past.ndim
        others, before = past.shape[:axis] + past.shape[axis + 1 :], (slice(None),) * axis
        begin = end = past.shape[axis]
        for piece in pieces:
            if piece.dtype != past.dtype or piece.shape[:axis] + piece.shape[axis + 1 :] != others:
                self._grown.pop(id, None)
                return np.concatenate([past, *pieces], axis)  # raises the error of shapes that do not fit
            end += piece.shape[axis]
        value = self.extended(id, past, end - begin, axis)
        for piece in pieces:
            following = begin + piece.shape[axis]
            value[(*before, slice(begin, following))] = piece
            begin = following
        return value

    def extended(self, id: str, past: np.ndarray, more: int, axis: int) -> np.ndarray:
        """Return ``past`` and behind it ``more`` elements along an axis, which the caller fills: see ``appended``."""
        # taken out, so that another run, or another Concat, does not write to the same room
        grown = self._grown.pop(id, None)
        axis %= past.ndim
        end, before = past.shape[axis] + more, (slice(None),) * axis
        if grown is not None and grown.begins_with(past, axis) and end <= grown.buffer.shape[axis]:
            buffer = grown.buffer
        else:
            buffer = np.empty((*past.shape[:axis], end + end // 2 + _SPARE, *past.shape[axis + 1 :]), past.dtype)
            buffer[(*before, slice(0, past.shape[axis]))] = past
        value = buffer[(*before, slice(0, end))]
        self._appended[id] = _Grown(buffer, value, axis)
        return value

    def lend(self, id: str) -> np.ndarray | None:
        """Return the array of a cache for a run that passes no other, or None if no earlier run has kept it."""
        cache = self._caches.get(id)
        if cache is not None and not self._shown:
            self._lent.add(id)
        return cache

    def cache(self, id: str, array: np.ndarray) -> np.ndarray:
        """Return the array of a cache for a step that overwrites it. ``array`` is the cache at the start of the run.

        The array is read-only if somebody else may hold it: the step then has to write into a copy.
        """
        if id in self._updated:
            return self._updated[id]
        return array if id in self._lent and self._caches[id] is array else read_only(array)

    def update(self, id: str, array: np.ndarray) -> None:
        """Set the array of a cache for the rest of this run and for later runs. Nobody else holds ``array``."""
        self._updated[id] = array

    def shown(self) -> Mapping[str, np.ndarray]:
        """Return the values by variable, for somebody who may keep them: no later run writes into these arrays."""
        self._shown = True
        return self.values

    def commit(self) -> None:
        """End a run: make the assigned values readable."""
        for id, value in self._assigned.items():
            grown = self._appended.get(id)
            if grown is not None and grown.value is value:
                self._grown[id] = grown
            else:
                value = np.array(value)
            self.values[id] = value
        for id, array in self._updated.items():
            if self._caches.get(id) is not array:
                self._caches[id], self.values[id] = array, read_only(array)
        self._shown = self._shown and not self._updated.keys() >= self._caches.keys()
        self._clear()

    def discard(self) -> None:
        """End a failed run: drop the values that it assigned, and the caches into which it may have written."""
        for id in self._lent:
            del self._caches[id], self.values[id]
        self._clear()

    def _clear(self) -> None:
        self._assigned.clear()
        self._appended.clear()
        self._updated.clear()
        self._lent.clear()

    def reset(self) -> None:
        """Drop all values, as before the first run."""
        self.values.clear()
        self._grown.clear()
        self._caches.clear()
        self._clear()


_SPARE: Final = 16
"""The least room of a new buffer: a prompt of one token is followed by others."""


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.flags.writeable = False
    return view
