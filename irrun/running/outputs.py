"""The outputs of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from irrun.kernels.copies import copy_to
from irrun.model import Model
from irrun.running.live import Live
from irrun.running.pool import Pool

__all__ = ["Outputs", "owned"]


class Outputs(Mapping[str, np.ndarray]):
    """The outputs of a run: a mapping from names to arrays, in Result order.

    A position is also accepted as a key, and ``arrays`` holds all outputs. Each array has the numpy (or ml_dtypes)
    dtype of its element type and shares memory with no other array. ``taps`` holds the intermediate values that were
    requested, by layer name.
    """

    def __init__(
        self,
        names: Sequence[tuple[str, ...]],
        arrays: Sequence[np.ndarray],
        taps: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self.arrays = tuple(arrays)
        self.taps: Mapping[str, np.ndarray] = taps or {}
        self._names = names

    @cached_property
    def _position(self) -> dict[str, int]:
        """The position of each output by name. Two outputs with the same name: the first one counts."""
        return {name: at for at, own in reversed([*enumerate(self._names)]) for name in own}

    def __getitem__(self, key: str | int) -> np.ndarray:
        if not isinstance(key, str):
            return self.arrays[key]
        try:
            return self.arrays[self._position[key]]
        except KeyError:
            raise KeyError(f"no output {key!r}; there are {', '.join(map(repr, self))}") from None

    def __iter__(self) -> Iterator[str]:
        return (own[0] for own in self._names)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        rows = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in zip(self, self.arrays))
        return f"Outputs({rows})"


def owned(model: Model, results: Sequence[np.ndarray | None], pool: Pool, live: Live) -> list[np.ndarray]:
    """Return the results in C order, as arrays that share memory with no other array: the caller may change them.

    A result that is a view, returned twice, or known to ``live``, as inputs, constants and variables are, is copied.
    Raises ExecutionError (IR604) if ``live`` has no room for a copy.
    """
    arrays: list[np.ndarray] = []
    seen: set[int] = set()
    for layer, array in zip(model.results, results):
        assert array is not None
        alone = isinstance(array, np.ndarray) and array.flags.carray and id(array) not in seen
        if not alone or live.knows(array) or not (array.base is None or pool.lends(array)):
            live.require(model, layer, array.nbytes)
            array = _copy(np.asarray(array), pool)
            live.add(model, layer, [array])
        seen.add(id(array))
        arrays.append(array)
    return arrays


def _copy(array: np.ndarray, pool: Pool) -> np.ndarray:
    """Return a copy in C order. Its memory comes from the pool, except for strings."""
    if array.dtype.hasobject:
        return np.array(array)
    copy = pool.take(array.shape, array.dtype)
    copy_to(copy, array)
    return copy
