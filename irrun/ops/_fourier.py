"""Shared by DFT, IDFT, RDFT and IRDFT: Fourier transforms along axes, each axis with a size of its own."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, opt, ports
from irrun.types import INF, UNKNOWN_RANK, Dim


class Fourier(Op):
    """Base of the four operations. Their clauses have the same labels everywhere.

    C1  ``data`` is not a scalar. Complex data has a last dim of 2 (real and imaginary part) and at least one more axis.
    C2  ``axes`` is 1D and names axes of ``data`` other than the one of the parts, none of them twice.
    C3  ``signal_size`` is 1D with one entry for each of ``axes``: a size, or -1 for the size of ``data``.
    """

    inputs = ports(data="T", axes="T_IND", signal_size=opt("T_SIZE"))
    types = {"T": "float", "T_IND": "i32 i64", "T_SIZE": "i32 i64"}
    complex_in: ClassVar[bool] = True
    complex_out: ClassVar[bool] = True

    def size(self, dim: Dim, last: bool) -> Dim:
        """Return the default size of a signal along a dim of ``data``. ``last`` means along the last of ``axes``."""
        return dim

    def result(self, size: Dim, last: bool) -> Dim:
        """Return the dim of the output for a signal of ``size``."""
        return size

    def transform(self, x: np.ndarray, sizes: list[int], axes: list[int]) -> np.ndarray:
        """Return the transform of ``x`` along ``axes``, each cut or padded to its size."""
        raise NotImplementedError

    def infer(self, at: Site, data: Value, axes: Value, signal_size: Value | None = None) -> Value:
        at.require(axes.rank in (None, 1), "C2", f"axes is {axes.shape}, not 1D")
        enough = (self.complex_in and self.complex_out) or axes.shape.count().hi > 0
        at.require(enough, "C2", "axes is empty, but the transform to or from real numbers needs a last axis")
        if signal_size is not None:
            same_shape = signal_size.shape.meet(axes.shape) is not None
            at.require(same_shape, "C3", f"signal_size is {signal_size.shape}, but axes is {axes.shape}")
        sizes = None if signal_size is None else signal_size.dims()
        listed = f"signal_size [{','.join(map(str, sizes or ()))}]"
        at.require(all(n.hi >= -1 for n in sizes or ()), "C3", f"{listed} has an entry below -1")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        dims = list(data.shape)
        at.require(len(dims) > self.complex_in, "C1", f"data is {data.shape}, without an axis to transform")
        if self.complex_in:
            parts = dims.pop()
            at.require(
                parts.fits(2), "C1", f"the last dim of data {data.shape} is {parts}, not 2 (real and imaginary part)"
            )
        known_axes = axes.ints()
        if known_axes is not None:
            places = _normalised_axes(at, known_axes, len(dims))
            wanted = [Dim(-1)] * len(places) if signal_size is None else sizes or [Dim(-1, INF)] * len(places)
            dims = self._plan(dims, places, wanted)[1]
        elif signal_size is not None or not (self.complex_in and self.complex_out):
            dims = [Dim.unknown() for _ in dims]
        return data.reshaped([*dims, 2] if self.complex_out else dims)

    def _plan(self, dims: Sequence[Dim], places: Sequence[int], wanted: Sequence[Dim]) -> tuple[list[Dim], list[Dim]]:
        """Return the size of the signal along each of ``places``, and the dims of the output."""
        sizes: list[Dim] = []
        result_dims = list(dims)
        for i, (place, size) in enumerate(zip(places, wanted)):
            last = i == len(places) - 1
            if size.lo < 0:
                whole = self.size(dims[place], last)
                size = whole if size.hi < 0 else size.max(0).union(whole)
            sizes.append(size)
            result_dims[place] = self.result(size, last)
        return sizes, result_dims

    def run(self, data: np.ndarray, axes: np.ndarray, signal_size: np.ndarray | None = None) -> np.ndarray:
        dims = [Dim(n) for n in (data.shape[:-1] if self.complex_in else data.shape)]
        places = _normalised_axes(Site(), axes.tolist(), len(dims))
        wanted = [-1] * len(places) if signal_size is None else signal_size.tolist()
        sizes, shape = (list(map(int, ns)) for ns in self._plan(dims, places, [Dim(n) for n in wanted]))
        if self.complex_out:
            shape.append(2)
        if 0 in sizes or data.size == 0:
            return np.zeros(shape, data.dtype)
        x = as_complex(data) if self.complex_in else data.astype(wide(data.dtype))
        y = self.transform(x, sizes, places) if places else x
        return narrow(as_parts(y) if self.complex_out else y, data.dtype)


def _normalised_axes(at: Site, axes: Sequence[int], rank: int) -> list[int]:
    """Return the axes counted from the front. Refuses (C2) axes that are outside the rank or named twice."""
    places = [at.axis(a, rank, "C2") for a in axes]
    at.require(len(set(places)) == len(places), "C2", f"axes {list(axes)} names an axis more than once")
    return places


def as_complex(parts: np.ndarray) -> np.ndarray:
    """Return complex numbers from an array whose last axis holds their real and imaginary parts."""
    parts = np.ascontiguousarray(parts, wide(parts.dtype))
    return parts.view(np.result_type(parts.dtype, np.complex64))[..., 0]


def as_parts(numbers: np.ndarray) -> np.ndarray:
    """Return the real and imaginary parts of complex numbers along a new last axis."""
    return np.stack([np.real(numbers), np.imag(numbers)], -1)


def positive_scalar(at: Site, name: str, value: Value, label: str) -> Dim:
    """Return the number in ``value``. Refuses a value that is not a scalar, and a number that is not positive."""
    at.require(value.rank in (None, 0), label, f"{name} is {value.shape}, not a scalar")
    number = (value.dims() or (Dim.unknown(),))[0]
    at.require(number.hi > 0, label, f"{name} is {number}, not positive")
    return number.max(1)


def centred_window(window: np.ndarray, size: int) -> np.ndarray:
    """Return ``window`` in the middle of a frame of ``size`` elements, with zeros around it."""
    left = (size - len(window)) // 2
    return np.pad(window, (left, size - len(window) - left))
