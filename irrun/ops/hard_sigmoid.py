"""HardSigmoid: a sigmoid of straight lines.  Spec: activation/hard-sigmoid-1."""

import numpy as np

from irrun.kernels.elementwise import elementwise, hard_sigmoid, in_blocks, native
from irrun.opdef import Kernel, Op, Request, Site, Value, op, ports
from irrun.ops._unary import through_floats


@op("HardSigmoid", since=1, spec="activation/hard-sigmoid-1")
class HardSigmoid(Op):
    """Compute ``max(0, min(1, alpha * x + beta))``.

    C1  ``alpha`` and ``beta`` are scalars.
    """

    per_element = 4
    inputs = ports(data="T", alpha="T", beta="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, alpha: Value, beta: Value) -> Value:
        for name, value in ("alpha", alpha), ("beta", beta):
            at.require(value.rank in (None, 0), "C1", f"{name} is {value.shape}, not a scalar")
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        constants = [None if value is None else value.exact for value in request.inputs[1:]]
        if not native(request.inputs[0]) or constants[0] is None or constants[1] is None:
            return None
        return elementwise(in_blocks(hard_sigmoid(constants[0].item(), constants[1].item())), *request.inputs)

    def run(self, data: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
        return through_floats(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1), data, alpha, beta)
