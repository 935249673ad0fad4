"""The kernel of operations that only reshape their data."""

import math
from collections.abc import Sequence

import numpy as np

from irrun.opdef import Kernel, Op, Value


def reshaping(op: Op, inputs: Sequence[Value | None]) -> Kernel | None:
    """Return the kernel of ``op``, whose first input is its data, and whose other inputs determine the shape.

    The kernel is a single ``reshape``. Return None if a shape is not known, or empty.
    """
    data, *others = inputs
    contents = [None if value is None else value.exact for value in others]
    if data is None or data.shape.static is None or any(v is not None and a is None for v, a in zip(others, contents)):
        return None
    if math.prod(data.shape.static) == 0:
        return None
    dims = op.run(np.broadcast_to(np.False_, data.shape.static), *contents).shape

    def call(data: np.ndarray, *_: np.ndarray | None) -> np.ndarray:
        return data.reshape(dims)

    return Kernel(call)
