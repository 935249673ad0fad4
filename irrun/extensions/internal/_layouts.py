"""Layouts of inputs: names for the axes, and one dim for each name."""

from __future__ import annotations

import numpy as np

from irrun.opdef import Site, Value
from irrun.types import Dim


class Layouts:
    """The named dims of a layer: a name stands for one dim, in whichever input it occurs.

    ``query="batch tokens heads size"`` says that ``query`` has rank 4. An axis that is a number has that dim.
    """

    def __init__(self, at: Site, ranks: str = "C1", dims: str = "C2") -> None:
        self.at, self.ranks, self.dims = at, ranks, dims
        self.named: dict[str, Dim] = {}
        self.first: dict[str, str] = {}

    def read(self, input: str, value: Value | None, layout: str) -> None:
        """Read the dims of an input. Refuse a rank or a dim that contradicts its layout, or an input before it."""
        names = layout.split()
        if value is None or value.rank is None:
            return
        shown = ", ".join(names)
        message = f"{input} {value.shape} has rank {value.rank}, not {len(names)}: ({shown})"
        self.at.require(value.rank == len(names), self.ranks, message)
        for name, dim in zip(names, value.shape):
            self.meet(name, dim, f"{input} {value.shape}")

    def meet(self, name: str, dim: Dim, said: str) -> None:
        """Refuse the layer unless ``dim`` may be the dim ``name``. ``said`` names where ``dim`` comes from."""
        own = Dim(int(name)) if name.isdigit() else self.named.get(name)
        met = dim if own is None else own.meet(dim)
        before = f", and {own} in {self.first[name]}" if name in self.first else ""
        message = f"{said} has {dim} as {name}{before}"
        self.at.require(met is not None, self.dims, message, dims=(dim,) if own is None else (own, dim))
        if met is not None and not name.isdigit():
            self.named[name] = met
            self.first.setdefault(name, said)

    def __getitem__(self, name: str) -> Dim:
        return Dim(int(name)) if name.isdigit() else self.named.get(name, Dim.unknown())

    def all(self, layout: str) -> list[Dim]:
        """Return the dims of a layout."""
        return [self[name] for name in layout.split()]

    def multiple(self, whole: str, part: str, label: str) -> None:
        """Refuse the layer unless the dim ``whole`` may be a multiple of the dim ``part``."""
        a, b = self[whole].value, self[part].value
        if a is None or b is None:
            return
        self.at.require(
            b > 0 and a % b == 0,
            label,
            f"{whole} is {a}, not a multiple of {part}, {b}",
            dims=(self[whole], self[part]),
        )


def widened(array: np.ndarray) -> np.ndarray:
    """Return the numbers as f32, or as f64 if they are f64."""
    return array if array.dtype == np.float64 else array.astype(np.float32, copy=False)


def grouped_product(rows: np.ndarray, shared: np.ndarray) -> np.ndarray:
    """Return the matrix products of ``rows`` (…, heads, n, k) and ``shared`` (…, fewer heads, k, m).

    Each head of ``shared`` serves the same number of consecutive heads.
    """
    each = rows.shape[-3] // shared.shape[-3]
    groups = rows.reshape(*rows.shape[:-3], shared.shape[-3], each, *rows.shape[-2:])
    return (groups @ shared[..., None, :, :]).reshape(*rows.shape[:-1], shared.shape[-1])


def marked(rows: np.ndarray, used: np.ndarray, count: int) -> np.ndarray:
    """Return which of ``count`` numbers each row names in the entries that are ``used`` (…, count)."""
    marks = np.zeros((*rows.shape[:-1], count + 1), bool)
    np.put_along_axis(marks, np.where(used & (rows < count), rows, count).astype(np.int64), True, -1)
    return marks[..., :count]
