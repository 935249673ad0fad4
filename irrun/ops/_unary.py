"""Operations on each element of a single tensor."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from irrun.kernels.cast import cast, is_float, plain
from irrun.kernels.elementwise import elementwise, gives, native, out_of
from irrun.opdef import Formula, Kernel, Op, Request, Site, Value, op, ports
from irrun.types import Dim, ElementType, as_dim


class Unary(Op):
    """An operation on one tensor. The output has its type and shape."""

    per_element = 1
    inputs = ports(data="T")
    types = {"T": "numeric"}
    exact = False
    """Whether ``kernel`` computes every type without a conversion. Otherwise, it computes floats of at least 32 bits
    only."""

    def kernel(self, x: np.ndarray) -> np.ndarray:
        """Return the result for an array."""
        raise NotImplementedError

    def dims(self, x: Dim) -> Dim:
        """Return the result for a Dim, for an operation that ``carries`` contents."""
        raise NotImplementedError

    def fast(self, data: Value) -> Callable[..., np.ndarray] | None:
        """Return a function with ``out`` that computes the same as ``kernel`` for f32 and f64, or None."""
        return None

    def formula(self) -> Formula | None:
        """Return what ``fast`` computes, if that has a formula."""
        return None

    def result(self, data: Value) -> np.dtype:
        """Return the dtype of the output."""
        return data.type.dtype

    def infer(self, at: Site, data: Value) -> Value:
        return data.reshaped(data.shape)

    def prepare(self, request: Request) -> Kernel | None:
        (data,) = request.inputs
        assert data is not None
        numpy_has_it = isinstance(self.kernel, np.ufunc) and gives(self.kernel, self.result(data), data)
        if numpy_has_it and (self.exact or native(data)):
            return elementwise(self.kernel, data)
        if native(data):
            return elementwise(self.fast(data) or out_of(self.run), data, formula=self.formula())
        return None

    def run(self, data: np.ndarray) -> np.ndarray:
        if data.dtype == object:
            return np.asarray(np.frompyfunc(lambda n: self.dims(as_dim(n)), 1, 1)(data), object)
        if not self.exact:
            return through_floats(self.kernel, data)
        with np.errstate(all="ignore"):
            return np.asarray(self.kernel(data)).astype(data.dtype, copy=False)


def through_floats(kernel: Callable[..., np.ndarray], data: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Apply ``kernel`` to floats of at least 32 bits, and round its result once to the type of ``data``.

    Integers are computed in f64 and rounded to the nearest, halves to even.
    """
    element_type = ElementType.of(data.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        if is_float(data):
            return cast(np.asarray(kernel(*map(plain, (data, *others)))), element_type)
        # OpenVINO's reference kernels of Asin, Exp, Log and Sin truncate, unlike its other kernels and its CPU plugin
        return cast(np.asarray(np.rint(kernel(*(a.astype(np.float64) for a in (data, *others))))), element_type)


def unary(
    name: str,
    kernel: Callable[[np.ndarray], np.ndarray],
    dims: Callable[[Dim], Dim] | None = None,
    *,
    doc: str,
    spec: str,
    since: int = 1,
    types: str = "numeric",
    exact: bool = False,
    base: type[Unary] = Unary,
    fast: Callable[..., np.ndarray] | None = None,
) -> type[Unary]:
    """Return an operation, declared as one row of a table, and register it.

    The operation is ``kernel``, for Dims ``dims``, and ``fast`` for f32 and f64 if that is a function.
    """
    body: dict[str, object] = {
        "__doc__": doc,
        "__module__": sys._getframe(1).f_globals["__name__"],
        "kernel": staticmethod(kernel),
        "types": {"T": types},
        "exact": exact,
        "carries": dims is not None,
    }
    if dims is not None:
        body["dims"] = staticmethod(dims)
    if fast is not None:
        body["fast"] = lambda self, data: fast
    return op(name, since=since, spec=spec)(type(name, (base,), body))
