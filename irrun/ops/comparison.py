"""Comparisons of two tensors, element by element: the output is boolean.  Spec: comparison/{equal,less,…}-1."""

from functools import partial

import numpy as np

from irrun.opdef import Site, Value
from irrun.ops._elementwise import Binary, binary
from irrun.types import ELEMENT_TYPES, Dim, encoded, holds_text

_BOOLEAN = ELEMENT_TYPES["boolean"]
_NO, _YES, _UNKNOWN = Dim(0), Dim(1), Dim(0, 1)


class _Comparison(Binary):
    def infer(self, at: Site, a: Value, b: Value) -> Value:
        return super().infer(at, a, b).typed(_BOOLEAN)

    def result(self, a: Value) -> np.dtype:
        return _BOOLEAN.dtype

    def run(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if holds_text(a):  # bytes have an order, surrogates that stand for bytes have not
            return np.asarray(self.kernel(_bytes(a), _bytes(self.aligned(a, b)))).astype(np.bool_)
        return super().run(a, b)

    def _dtype(self, a: np.ndarray) -> np.dtype:
        return _BOOLEAN.dtype


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.asarray(np.frompyfunc(encoded, 1, 1)(array), object)


def _equal(a: Dim, b: Dim) -> Dim:
    """Return whether two dims are equal: 1, 0, or the range of both if that is unknown."""
    return _YES if a.same(b) else _NO if a.meet(b) is None else _UNKNOWN


def _less(a: Dim, b: Dim) -> Dim:
    """Return whether one dim is less than the other: 1, 0, or the range of both if that is unknown."""
    return _YES if a.hi < b.lo else _NO if a.lo >= b.hi or a.same(b) else _UNKNOWN


_comparison = partial(binary, types="any", base=_Comparison)

Equal = _comparison("Equal", np.equal, _equal, doc="``a == b``.", spec="comparison/equal-1")
NotEqual = _comparison(
    "NotEqual", np.not_equal, lambda a, b: 1 - _equal(a, b), doc="``a != b``.", spec="comparison/notequal-1"
)
Less = _comparison("Less", np.less, _less, doc="``a < b``.", spec="comparison/less-1")
LessEqual = _comparison(
    "LessEqual", np.less_equal, lambda a, b: 1 - _less(b, a), doc="``a <= b``.", spec="comparison/lessequal-1"
)
Greater = _comparison("Greater", np.greater, lambda a, b: _less(b, a), doc="``a > b``.", spec="comparison/greater-1")
GreaterEqual = _comparison(
    "GreaterEqual", np.greater_equal, lambda a, b: 1 - _less(a, b), doc="``a >= b``.", spec="comparison/greater-equal-1"
)
