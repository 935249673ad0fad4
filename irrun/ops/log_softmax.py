"""LogSoftmax: the logarithm of SoftMax.  Spec: activation/log-soft-max-5."""

import numpy as np

from irrun.kernels.normalization import shifted, sums
from irrun.opdef import op
from irrun.ops._softmax import AlongAxis


@op("LogSoftmax", since=5, spec="activation/log-soft-max-5")
class LogSoftmax(AlongAxis):
    """Compute ``x - log(sum(exp(x)))`` along ``axis``.

    C1  ``axis`` is at least -rank and less than the rank of ``data``.
    """

    types = {"T": "float"}

    def kernel(self, x: np.ndarray, axis: int) -> np.ndarray:
        result = shifted(x, axis)
        result -= np.log(np.exp(result).sum(axis, keepdims=True))
        return result

    def block(self, x: np.ndarray, out: np.ndarray, axis: int) -> None:
        np.subtract(x, np.maximum.reduce(x, axis, keepdims=True), out)
        np.subtract(out, np.log(sums(np.exp(out), axis)), out)
