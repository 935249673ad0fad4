"""Element-wise operations on two or more tensors: the rules of ``auto_broadcast``.  Spec: broadcast-rules."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from irrun.kernels.elementwise import elementwise, gives, native, out_of
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, ports
from irrun.ops._broadcasting import refuse
from irrun.types import Dim, ElementType, PartialShape, as_dim, holds_text


class Elementwise(Op):
    """An operation whose inputs are broadcast to one shape by the rules of ``auto_broadcast``."""

    per_element = 1
    auto_broadcast = attr.choice("none", "numpy", "pdpd", default="numpy", also={"explicit": "none"})
    # OpenVINO does not read the spelling ``axis``, and takes 0 where the attribute is missing
    axis = attr.int(default=-1, name="auto_broadcast.auto_broadcast_axis", aliases=("axis",))

    def broadcast(
        self, at: Site, a: PartialShape, b: PartialShape, names: tuple[str, str] = ("a", "b")
    ) -> PartialShape:
        """Return the shape to which ``a`` and ``b`` are broadcast.

        Refuses by the clauses C1 (none), C2 (numpy) and C3 (pdpd).
        """
        if self.auto_broadcast == "pdpd":
            return self._broadcast_pdpd(at, a, b, names)
        if self.auto_broadcast == "none":
            shape = a.meet(b)
            at.require(shape is not None, "C1", f"{names[0]} {a} and {names[1]} {b} differ, but auto_broadcast is none")
        else:
            shape = a.broadcast(b)
            if shape is None:
                refuse(at, "C2", f"{names[0]} {a} and {names[1]} {b} cannot be broadcast", names, a, b)
        assert shape is not None
        return shape

    def _broadcast_pdpd(self, at: Site, a: PartialShape, b: PartialShape, names: tuple[str, str]) -> PartialShape:
        """Return ``a``, with dims that are known from ``b`` filled in. Only ``b`` is broadcast."""
        at.require(self.axis >= -1, "C3", f"axis {self.axis} of pdpd broadcasting is less than -1")
        if a.dims is None or b.dims is None:
            return a
        mismatch = f"{names[1]} {b} cannot be broadcast to {names[0]} {a}"
        at.require(len(b) <= len(a), "C3", f"{mismatch}: its rank is {len(b)}, more than {len(a)}")
        axis = len(a) - len(b) if self.axis == -1 else self.axis
        part = list(b)
        while part and axis + len(part) > len(a) and part[-1].fits(1):
            part.pop()  # "the trailing dimensions of size 1 for input B will be ignored"
        at.require(axis + len(part) <= len(a), "C3", f"{mismatch} from axis {axis} on: it has too many dims")
        dims = list(a)
        for i, dim in enumerate(part, axis):
            both = dims[i].meet(dim)
            at.require(both is not None or dim.fits(1), "C3", f"{mismatch}: dim {dim} meets dim {a[i]} at axis {i}")
            if both is not None and not dim.fits(1):
                dims[i] = both
        return PartialShape(tuple(dims))

    def aligned(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return ``b`` reshaped so that numpy broadcasts it to ``a`` as ``auto_broadcast`` requires."""
        if self.auto_broadcast != "pdpd":
            return b
        axis = a.ndim - b.ndim if self.axis == -1 else self.axis
        return b.reshape((b.shape + (1,) * a.ndim)[: a.ndim - axis])

    def as_numpy(self, *inputs: Value) -> bool:
        """Return whether numpy broadcasts these inputs in the same way as ``auto_broadcast``."""
        ranks = {value.rank for value in inputs} - {0}
        return self.auto_broadcast != "pdpd" or (len(ranks) == 1 and None not in ranks and self.axis in (-1, 0))


class Binary(Elementwise):
    """Two tensors of one type.

    C1  auto_broadcast none: both shapes are equal.
    C2  auto_broadcast numpy: aligned from the right, two dims are equal, or one of them is 1.
    C3  auto_broadcast pdpd: each dim of ``b``, without trailing 1s, is 1 or equals the dim of ``a`` at the same place,
        counted from ``axis`` on. ``axis`` is at least -1, which aligns the last axes. The rank of ``b`` is at most that
        of ``a``.
    """

    inputs = ports(a="T", b="T")
    types = {"T": "numeric"}

    def kernel(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return the result for arrays that numpy itself can broadcast."""
        raise NotImplementedError

    def dims(self, a: Dim, b: Dim) -> Dim:
        """Return the result for Dims, for an operation that ``carries`` contents."""
        raise NotImplementedError

    def infer(self, at: Site, a: Value, b: Value) -> Value:
        return (b if a.type.kind == "dynamic" else a).reshaped(self.broadcast(at, a.shape, b.shape))

    def fast(self, a: Value, b: Value) -> Callable[..., np.ndarray] | None:
        """Return a function with ``out`` that computes the same as ``kernel`` for these types, or None."""
        return None

    def result(self, a: Value) -> np.dtype:
        """Return the dtype of the output."""
        return a.type.dtype

    def prepare(self, request: Request) -> Kernel | None:
        a, b = request.inputs
        assert a is not None
        assert b is not None
        if not self.as_numpy(a, b):
            return None
        call = self.fast(a, b)
        if call is None and isinstance(self.kernel, np.ufunc) and gives(self.kernel, self.result(a), a, b):
            call = self.kernel
        if call is None and native(a, b):
            call = out_of(self.run)
        formula = {np.add: ("add",), np.multiply: ("multiply",)}.get(self.kernel)
        return None if call is None else elementwise(call, a, b, formula=formula)

    def run(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        b = self.aligned(a, b)
        if object in (a.dtype, b.dtype) and not holds_text(a):
            return np.asarray(np.frompyfunc(lambda x, y: self.dims(as_dim(x), as_dim(y)), 2, 1)(a, b), object)
        with np.errstate(all="ignore"):
            return np.asarray(self.kernel(a, b)).astype(self._dtype(a), copy=False)

    def _dtype(self, a: np.ndarray) -> np.dtype:
        return a.dtype


_CLAUSES = (Binary.__doc__ or "").partition("\n")[2]


def binary(
    name: str,
    kernel: Callable[..., np.ndarray],
    dims: Callable[[Dim, Dim], Dim] | None = None,
    *,
    doc: str,
    spec: str,
    since: int = 1,
    types: str = "numeric",
    base: type[Binary] = Binary,
    fast: Callable[[Value, Value], Callable[..., np.ndarray] | None] | None = None,
) -> type[Binary]:
    """Return an operation, declared as one row of a table, and register it.

    The operation is ``kernel``, for Dims ``dims``. ``fast`` returns a faster function for its inputs.
    """
    body: dict[str, object] = {
        "__doc__": f"{doc}\n{_CLAUSES}",
        "__module__": sys._getframe(1).f_globals["__name__"],
        "kernel": staticmethod(kernel),
        "types": {"T": types},
        "carries": dims is not None,
        "sums": kernel is np.add,
    }
    if dims is not None:
        body["dims"] = staticmethod(dims)
    if fast is not None:
        body["fast"] = staticmethod(fast)
    return op(name, since=since, spec=spec)(type(name, (base,), body))


def is_integer(array: np.ndarray) -> bool:
    """Return whether the elements are integers, including those narrower than a byte."""
    element_type = ElementType.of(array.dtype)
    return element_type is not None and element_type.is_integer


def reaches(a: PartialShape, b: PartialShape) -> bool:
    """Return whether numpy may broadcast ``b`` to the shape ``a``."""
    if a.dims is None or b.dims is None:
        return True
    aligned = zip(reversed(b.dims), reversed(a.dims))
    return len(b) <= len(a) and all(n.fits(1) or n.meet(dim) is not None for n, dim in aligned)
