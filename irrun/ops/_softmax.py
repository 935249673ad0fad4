"""What SoftMax and LogSoftmax share."""

from typing import Final

import numpy as np

from irrun.opdef import CHANNELS_LAST, Kernel, Op, Site, Value, attr, ports
from irrun.ops._blocked import whole_along
from irrun.ops._gemm import matmul
from irrun.ops._last import moved
from irrun.ops._pointwise import native
from irrun.ops._unary import through_floats


class AlongAxis(Op):
    """Normalises along one axis."""

    axis = attr.int(default=1)
    inputs = ports(data="T")
    # OpenVINO: takes integers and booleans as well
    types = {"T": "boolean numeric"}

    def kernel(self, x: np.ndarray, axis: int) -> np.ndarray:
        """The operation on floats of at least 32 bits."""
        raise NotImplementedError

    def block(self, x: np.ndarray, out: np.ndarray, axis: int) -> None:
        """The same to ``out``, which may be ``x``."""
        raise NotImplementedError

    def prepare(self, *inputs: Value | None) -> Kernel:
        (data,) = inputs
        if data is None or not native(data) or not data.rank:
            return Kernel(self.run)
        axis = self.axis % data.rank
        return whole_along(lambda x, out: self.block(x, out, axis), data, (axis,))

    def prepare_channels_last(self, *inputs: Value | None) -> Kernel | None:
        return moved(self, inputs, axis=CHANNELS_LAST[self.axis])

    def infer(self, at: Site, data: Value) -> Value:
        # OpenVINO: a scalar counts as 1D
        at.axis(self.axis, None if data.rank is None else max(data.rank, 1), "C1")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray) -> np.ndarray:
        found = through_floats(lambda x: self.kernel(x, self.axis), np.atleast_1d(data))
        return found.reshape(data.shape)


def shifted(x: np.ndarray, axis: int) -> np.ndarray:
    """x less its maximum along the axis, so that no exponential overflows; a new array."""
    return x - x.max(axis, keepdims=True, initial=-np.inf)


def exponentials(x: np.ndarray, axis: int, out: np.ndarray) -> None:
    """Fill ``out`` with what each row along ``axis`` is then divided by the sum of: exp(x), or a finite multiple."""
    short = axis == x.ndim - 1 and 0 < x.shape[axis] <= _SHORT
    if short and x.min() >= -_SAFE and x.max() <= _SAFE:  # quicker than the maximum of every row
        np.exp(x, out)
    else:
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True, initial=-np.inf), out)
        np.exp(out, out)


_SAFE: Final = 60
"""Whose exponential, and sums of as many of them as there can be, are normal numbers, as is that of its negative."""
_SHORT: Final = 384
"""Elements in a row below which a call for each row is what takes the time."""


def sums(x: np.ndarray, axis: int) -> np.ndarray:
    """The sums along an axis, which stays as 1."""
    if axis == x.ndim - 1:
        return matmul(x, np.ones(x.shape[-1], x.dtype))[..., None]  # faster than sums by numpy
    return np.add.reduce(x, axis, keepdims=True)
