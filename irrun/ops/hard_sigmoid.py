"""HardSigmoid: a sigmoid of straight lines.  Spec: activation/hard-sigmoid-1."""

import numpy as np

from irrun.kernels.elementwise import hard_sigmoid, in_blocks, native
from irrun.opdef import Kernel, Op, Site, Value, op, ports
from irrun.ops._pointwise import pointwise
from irrun.ops._unary import through_floats


@op("HardSigmoid", since=1, spec="activation/hard-sigmoid-1")
class HardSigmoid(Op):
    """Compute ``max(0, min(1, alpha * x + beta))``.

    C1  ``alpha`` and ``beta`` are scalars.
    """

    inputs = ports(data="T", alpha="T", beta="T")
    # OpenVINO takes integers and booleans, too
    types = {"T": "boolean numeric"}

    def infer(self, at: Site, data: Value, alpha: Value, beta: Value) -> Value:
        for name, value in ("alpha", alpha), ("beta", beta):
            at.require(value.rank in (None, 0), "C1", f"{name} is {value.shape}, not a scalar")
        return data.reshaped(data.shape)

    def prepare(self, *inputs: Value | None) -> Kernel:
        found = [None if value is None else value.exact for value in inputs[1:]]
        if not native(inputs[0]) or found[0] is None or found[1] is None:
            return Kernel(self.run)
        return pointwise(self, in_blocks(hard_sigmoid(found[0].item(), found[1].item())), *inputs)

    def run(self, data: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        return through_floats(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), data, alpha, beta)
