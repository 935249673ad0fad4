"""SoftMax: exponentials along an axis, divided by their sum.  Spec: activation/softmax-{1,8}."""

from typing import Final

import numpy as np

from irrun.opdef import Site, Value, op
from irrun.ops._softmax import AlongAxis, shifted, sums

_SAFE: Final = 60
"""Whose exponential, and sums of as many of them as there can be, are normal numbers, as is that of its negative."""
_SHORT: Final = 384
"""Elements in a row below which a call for each row is what takes the time."""


@op("SoftMax", since=8, spec="activation/softmax-8")
class SoftMax8(AlongAxis):
    """``exp(x) / sum(exp(x))`` along ``axis``.

    C1  ``axis`` lies within the rank, or before it by less than the rank.
    """

    def kernel(self, x: np.ndarray, axis: int) -> np.ndarray:
        found = shifted(x, axis)
        np.exp(found, out=found)
        found /= found.sum(axis, keepdims=True)
        return found

    def block(self, x: np.ndarray, out: np.ndarray, axis: int) -> None:
        short = axis == x.ndim - 1 and x.shape[axis] <= _SHORT
        if short and x.min() >= -_SAFE and x.max() <= _SAFE:  # quicker than the maximum of every row
            np.exp(x, out)
        else:
            np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), out)
            np.exp(out, out)
        np.divide(out, sums(out, axis), out)


@op("SoftMax", since=1, spec="activation/softmax-1")
class SoftMax1(SoftMax8):
    """As SoftMax-8, without negative axes.

    C1  ``axis`` lies within the rank, and is not negative.
    """

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.axis >= 0, "C1", f"axis {self.axis} is negative")
        return super().infer(at, data)
