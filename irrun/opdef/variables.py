"""The variables of a model, which keep their values from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Final, NamedTuple

import numpy as np

__all__ = ["Together", "Variables", "read_only"]


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


class Together:
    """Variables whose values have grown in buffers by the same lengths, along one axis, and may go on together.

    ``length`` is that of their values, and ``next`` what it is after the current run. ``free`` is empty while a run
    appends to them, so that no other one does.
    """

    def __init__(self, grown: Mapping[str, _Grown]) -> None:
        first = next(iter(grown.values()))
        self.buffers = {id: one.buffer for id, one in grown.items()}
        self.axis = first.axis
        self.length = self.next = first.value.shape[first.axis]
        self.room = min(buffer.shape[self.axis] for buffer in self.buffers.values())
        self.free: list[None] = [None]

    def value(self, id: str, length: int) -> np.ndarray:
        """Return the beginning of a buffer."""
        return self.buffers[id][(*(slice(None),) * self.axis, slice(0, length))]

    def holds(self, values: Mapping[str, np.ndarray]) -> bool:
        """Return whether these are the values of the variables."""
        return all(
            values[id].base is buffer and values[id].shape[self.axis] == self.length
            for id, buffer in self.buffers.items()
        )


class _Values(MutableMapping[str, np.ndarray]):
    """The values of variables, as they are at each moment."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables

    def __getitem__(self, id: str) -> np.ndarray:
        value = self._variables.read(id)
        if value is None:
            raise KeyError(id)
        return value

    def __setitem__(self, id: str, value: np.ndarray) -> None:
        self._variables.replace(id, value)

    def __delitem__(self, id: str) -> None:
        self._variables.replace(id, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables.ids)

    def __len__(self) -> int:
        return len(self._variables.ids)

    def __repr__(self) -> str:
        return repr({**self})


class Variables:
    """The variables of a model, which keep their values between runs. ReadValue reads them and Assign writes them.

    A value that is assigned in one run is read only in later runs. No run changes a value: whoever holds the array of
    a variable keeps what it held then, also if the variable has grown since.

    A cache is a variable of another kind: a Parameter whose array a layer overwrites (``Op.updates``). It has the name
    of the Parameter. Later runs write into its array, unless somebody has asked for the values (``shown``).
    """

    def __init__(self) -> None:
        self._values: dict[str, np.ndarray] = {}
        self._assigned: dict[str, np.ndarray] = {}
        self._grown: dict[str, _Grown] = {}
        """The buffers of values, by variable. A run that appends to one takes it out."""
        self._appended: dict[str, _Grown] = {}
        """The buffers that runs have appended to and not yet committed."""
        self._caches: dict[str, np.ndarray] = {}
        """The caches among the values as arrays that a run may write into."""
        self._updated: dict[str, np.ndarray] = {}
        """The caches that steps of the current run have returned."""
        self._lent: set[str] = set()
        """The caches into which the current run may write."""
        self._shown = False
        """Whether somebody may hold arrays of the values."""
        self._together: Together | None = None
        """The variables that have grown together. Their values are not in ``_values``, if these are shorter."""
        self._growing: Together | None = None
        """Those that grow together in the current run."""
        self.made: list[np.ndarray] = []
        """The buffers that the current run has made. Whoever counts their memory takes them out."""

    @property
    def values(self) -> MutableMapping[str, np.ndarray]:
        """The values by variable, at each moment. What the caller sets is the value for the next run."""
        return _Values(self)

    @property
    def held(self) -> list[np.ndarray]:
        """The arrays that hold the values, or that these are views of."""
        buffers = {} if self._together is None else self._together.buffers
        return [*(array for id, array in self._values.items() if id not in buffers), *buffers.values()]

    def read(self, id: str) -> np.ndarray | None:
        """Return the value of a variable, or None if no earlier run has assigned one."""
        together = self._together
        if together is None or id not in together.buffers:
            return self._values.get(id)
        return together.value(id, together.length)

    def replace(self, id: str, value: np.ndarray | None) -> None:
        """Set the value of a variable between two runs, or forget it."""
        self._part()
        self._values.pop(id, None)
        if value is not None:
            self._values[id] = value

    @property
    def ids(self) -> list[str]:
        """The variables that have a value."""
        return [*self._values]

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
        if self._together is not None and id in self._together.buffers:
            self._part()
        # taken out, so that another run, or another Concat, does not write to the same room
        grown = self._grown.pop(id, None)
        axis %= past.ndim
        end, before = past.shape[axis] + more, (slice(None),) * axis
        if grown is not None and grown.begins_with(past, axis) and end <= grown.buffer.shape[axis]:
            buffer = grown.buffer
        else:
            buffer = np.empty((*past.shape[:axis], end + end // 2 + _SPARE, *past.shape[axis + 1 :]), past.dtype)
            buffer[(*before, slice(0, past.shape[axis]))] = past
            self.made.append(buffer)
        value = buffer[(*before, slice(0, end))]
        self._appended[id] = _Grown(buffer, value, axis)
        return value

    def together(self, ids: Sequence[str]) -> Together | None:
        """Let variables to which the run has appended grow together from now on, if they are as long as each other."""
        appended = {id: self._appended[id] for id in ids if id in self._appended}
        lengths = {(one.axis, one.value.shape[one.axis]) for one in appended.values()}
        self._growing = Together(appended) if len(appended) == len(ids) and len(lengths) == 1 else None
        return self._growing

    def grow(self, together: Together) -> int:
        """Append one element to each variable, which the caller fills, and return how long they are then.

        Returns 0 if something else has happened to the variables, or their buffers have no room: see ``extended``.
        """
        if together is not self._together or self._assigned or together.length >= together.room:
            return 0
        try:
            together.free.pop()
        except IndexError:  # another run appends to them
            return 0
        together.next = together.length + 1
        return together.next

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

    def _part(self) -> None:
        """Let the variables that grow together have values, and buffers, of their own again.

        A buffer to which a run appends at the moment stays with that run.
        """
        together, self._together = self._together, None
        if together is None:
            return
        for id, buffer in together.buffers.items():
            self._values[id] = together.value(id, together.length)
            value = together.value(id, together.next)
            grown = self._grown if together.next == together.length else self._appended
            grown[id] = _Grown(buffer, value, together.axis)
            if grown is self._appended:
                self._assigned[id] = value

    def commit(self) -> None:
        """End a run: make the assigned values readable."""
        if self._assigned:
            self._part()
        if self._together is not None:
            self._together.length = self._together.next
        for id, value in self._assigned.items():
            grown = self._appended.get(id)
            if grown is not None and grown.value is value:
                self._grown[id] = grown
            else:
                value = np.array(value)
            self._values[id] = value
        if self._growing is not None and self._growing.holds(self._values):
            self._together = self._growing
            for id in self._growing.buffers:
                del self._grown[id]
        for id, array in self._updated.items():
            if self._caches.get(id) is not array:
                self._caches[id], self._values[id] = array, read_only(array)
        self._shown = self._shown and not self._updated.keys() >= self._caches.keys()
        self._clear()

    def discard(self) -> None:
        """End a failed run: drop the values that it assigned, and the caches into which it may have written."""
        for id in self._lent:
            del self._caches[id], self._values[id]
        self._clear()

    def _clear(self) -> None:
        self._assigned.clear()
        self._appended.clear()
        self._updated.clear()
        self._lent.clear()
        self._growing = None
        self.made.clear()
        if self._together is not None:
            self._together.next = self._together.length
            self._together.free = [None]

    def reset(self) -> None:
        """Drop all values, as before the first run."""
        self._together = None
        self._values.clear()
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
