"""The kernel of operations that only reshape their data."""

import math

import numpy as np

from irrun.opdef import Kernel, Op, Value


def reshaping(op: Op, *inputs: Value | None) -> Kernel:
    """Return the kernel of ``op``, whose first input is its data, and whose other inputs determine the shape.

    Where the shapes are known and not empty, the kernel is a single ``reshape``.
    """
    data, *others = inputs
    contents = [None if value is None else value.exact for value in others]
    if data is None or data.shape.static is None or any(v is not None and a is None for v, a in zip(others, contents)):
        return Kernel(op.run)
    if math.prod(data.shape.static) == 0:
        return Kernel(op.run)
    dims = op.run(np.broadcast_to(np.False_, data.shape.static), *contents).shape

    def call(data: np.ndarray, *_: np.ndarray | None) -> np.ndarray:
        return data.reshape(dims)

    return Kernel(call)
