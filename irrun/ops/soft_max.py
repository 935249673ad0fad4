"""SoftMax: exponentials along an axis, divided by their sum.  Spec: activation/softmax-{1,8}."""

import numpy as np

from irrun.kernels.normalization import exponentials, shifted, sums
from irrun.opdef import Site, Value, op
from irrun.ops._softmax import AlongAxis


@op("SoftMax", since=8, spec="activation/softmax-8")
class SoftMax8(AlongAxis):
    """Compute ``exp(x) / sum(exp(x))`` along ``axis``.

    C1  ``axis`` is at least -rank and less than the rank of ``data``.
    """

    def kernel(self, x: np.ndarray, axis: int) -> np.ndarray:
        result = shifted(x, axis)
        np.exp(result, out=result)
        result /= result.sum(axis, keepdims=True)
        return result

    def block(self, x: np.ndarray, out: np.ndarray, axis: int) -> None:
        exponentials(x, axis, out)
        np.divide(out, sums(out, axis), out)


@op("SoftMax", since=1, spec="activation/softmax-1")
class SoftMax1(SoftMax8):
    """Compute the same as SoftMax-8, without negative axes.

    C1  ``axis`` is at least 0 and less than the rank of ``data``.
    """

    def infer(self, at: Site, data: Value) -> Value:
        at.require(self.axis >= 0, "C1", f"axis {self.axis} is negative")
        return super().infer(at, data)
