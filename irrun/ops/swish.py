"""Swish: x times its sigmoid.  Spec: activation/swish-4."""

import numpy as np

from irrun.opdef import Op, Site, Value, op, opt, ports
from irrun.ops._unary import through_floats


@op("Swish", since=4, spec="activation/swish-4")
class Swish(Op):
    """``x / (1 + exp(-beta * x))``; without ``beta`` it is 1.

    C1  ``beta`` is a scalar.
    """

    inputs = ports(data="T", beta=opt("T"))
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, beta: Value | None = None) -> Value:
        at.require(beta is None or beta.rank in (None, 0), "C1", f"beta is {beta and beta.shape}, not a scalar")
        return data.reshaped(data.shape)

    def run(self, data: np.ndarray, beta: np.ndarray | None = None) -> np.ndarray:
        if beta is None:
            return through_floats(lambda x: x / (1 + np.exp(-x)), data)
        return through_floats(lambda x, beta: x / (1 + np.exp(-beta * x)), data, beta)
