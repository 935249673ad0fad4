"""OneHot: indices as rows that hold one value at the index and another elsewhere.  Spec: sequence/one-hot-{1,16}."""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import Dim, PartialShape


class _OneHot(Op):
    axis = attr.int()
    inputs = ports(indices="T1", depth="T_DEPTH", on_value="T2", off_value="T2")
    # OpenVINO takes a depth of another type than the indices
    types = {"T1": "i32 i64", "T_DEPTH": "i32 i64", "T2": "any"}

    def infer(self, at: Site, indices: Value, depth: Value, on_value: Value, off_value: Value) -> Value:
        for name, value in ("depth", depth), ("on_value", on_value), ("off_value", off_value):
            at.require(value.rank in (None, 0), "C1", f"{name} is {value.shape}, not a scalar")
        classes = (depth.dims() or (Dim.unknown(),))[0]
        at.require(classes.hi >= 1, "C2", f"depth {classes} is not positive")
        element_type = off_value.type if on_value.type.kind == "dynamic" else on_value.type
        if indices.shape.dims is None:
            return Value(element_type, indices.shape)
        axis = at.axis(self.axis, len(indices.shape) + 1, "C3")
        dims = indices.shape.dims
        return Value(element_type, PartialShape((*dims[:axis], classes.max(0), *dims[axis:])))

    def run(self, indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray) -> np.ndarray:
        axis = self.axis % (indices.ndim + 1)
        classes = np.arange(int(depth)).reshape(-1, *(1,) * (indices.ndim - axis))
        on = np.expand_dims(self._normalized(plain(indices), int(depth)), axis) == classes
        return np.where(on, on_value, off_value)

    def _normalized(self, indices: np.ndarray, depth: int) -> np.ndarray:
        return indices


@op("OneHot", since=16, spec="sequence/one-hot-16")
class OneHot16(_OneHot):
    """Add an axis of length ``depth``, which holds ``on_value`` at the index and ``off_value`` elsewhere.

    An index outside ``depth`` gives ``off_value`` only. In mode normalize, the indices -1 to -``depth`` count from the
    end.

    C1  ``depth``, ``on_value`` and ``off_value`` are scalars.
    C2  ``depth`` is positive.
    C3  ``axis`` is at least -rank and less than the rank of the output.
    """

    # OpenVINO writes it with an underscore
    negative_indices_mode = attr.choice(
        "ignore-negative", "normalize", default="ignore-negative", also={"ignore_negative": "ignore-negative"}
    )

    def _normalized(self, indices: np.ndarray, depth: int) -> np.ndarray:
        if self.negative_indices_mode == "ignore-negative":
            return indices
        return np.where(indices < 0, indices.astype(np.int64) + depth, indices)


@op("OneHot", since=1, spec="sequence/one-hot-1")
class OneHot1(_OneHot):
    """Add an axis of length ``depth``, which holds ``on_value`` at the index and ``off_value`` elsewhere.

    An index outside ``depth`` gives ``off_value`` only.

    C1  ``depth``, ``on_value`` and ``off_value`` are scalars.
    C2  ``depth`` is positive.
    C3  ``axis`` is at least -rank and less than the rank of the output.
    """
