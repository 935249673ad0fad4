"""ConvertLike: the element type of another tensor.  Spec: type/convert-like-1."""

import numpy as np

from irrun.kernels.cast import cast
from irrun.opdef import Op, Site, Value, op, ports
from irrun.types import ElementType


@op("ConvertLike", since=1, spec="type/convert-like-1")
class ConvertLike(Op):
    """Convert each element of ``data`` to the type of ``like``, as C does."""

    inputs = ports(data="T1", like="T2")
    types = {"T1": "boolean numeric u1 u3 u6 nf4", "T2": "boolean numeric"}

    def infer(self, at: Site, data: Value, like: Value) -> Value:
        return data.typed(like.type)

    def run(self, data: np.ndarray, like: np.ndarray) -> np.ndarray:
        to = ElementType.of(like.dtype)
        assert to is not None
        return cast(data, to)
