"""Bincount: how often each number occurs.  Spec: condition/bincount-17."""

import numpy as np

from irrun.opdef import Op, Refused, Site, Value, attr, op, opt, ports
from irrun.types import ELEMENT_TYPES, INF, Dim


@op("Bincount", since=17, spec="condition/bincount-17")
class Bincount(Op):
    """Count how often each number occurs in ``data``, or add up the ``weights`` at its positions.

    Element i of the output is the count of i. The length of the output is the largest number plus 1, and at least
    ``minlength``.

    C1  ``data`` is 1D.
    C2  ``weights`` is 1D and has the length of ``data``.
    C3  No element of ``data`` is negative.
    C4  ``minlength`` is not negative.
    """

    minlength = attr.int(default=0)
    inputs = ports(data="T_DATA", weights=opt("T_WEIGHTS"))
    types = {"T_DATA": "i32 i64 u8 u16 u32 u64", "T_WEIGHTS": "f32 f64 i32 i64"}

    def infer(self, at: Site, data: Value, weights: Value | None = None) -> Value:
        at.require(self.minlength >= 0, "C4", f"minlength {self.minlength} is negative")
        at.require(data.rank in (None, 1), "C1", f"data is {data.shape}, not 1D")
        if weights is not None:
            at.require(weights.rank in (None, 1), "C2", f"weights is {weights.shape}, not 1D")
            same = data.shape[0].meet(weights.shape[0]) is not None
            at.require(same, "C2", f"data has {data.shape[0]} elements, but weights has {weights.shape[0]}")
        length = Dim(self.minlength, INF)
        if data.exact is not None:
            _refuse_negative(data.exact)
            length = Dim(self._length(data.exact))
        return Value(ELEMENT_TYPES["i64"] if weights is None else weights.type, data.shape).reshaped([length])

    def run(self, data: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        _refuse_negative(data)
        out = np.zeros(self._length(data), np.int64 if weights is None else weights.dtype)
        np.add.at(out, data.astype(np.int64), 1 if weights is None else weights)
        return out

    def _length(self, data: np.ndarray) -> int:
        """Return the length of the output."""
        return max(int(data.max()) + 1 if data.size else 0, self.minlength)


def _refuse_negative(data: np.ndarray) -> None:
    if data.size and data.min() < 0:
        raise Refused(f"data has the negative element {data.min()}", "C3")
