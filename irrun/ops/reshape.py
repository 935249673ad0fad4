"""Reshape: the same elements in another shape.  Spec: shape/reshape-1."""

import math

import numpy as np

from irrun.opdef import Kernel, Op, Refused, Request, Site, Value, attr, op, ports
from irrun.opdef.columns import elements
from irrun.ops._reshaping import reshaping
from irrun.types import UNKNOWN_RANK, Dim, product


@op("Reshape", since=1, spec="shape/reshape-1")
class Reshape(Op):
    """Give ``data`` the dims in ``shape``. A -1 is inferred, and with ``special_zero``, a 0 copies the dim of ``data``.

    C1  ``shape`` is 1D.
    C2  No entry of ``shape`` is below -1, and at most one is -1.
    C3  With ``special_zero``, each 0 is at the position of an axis of ``data``.
    C4  The output has the same number of elements as ``data``.
    """

    special_zero = attr.bool()
    checked = False
    views = "reshaped"
    inputs = ports(data="T", shape="T_SHAPE")
    types = {"T": "any", "T_SHAPE": "int"}
    carries = True

    def infer(self, at: Site, data: Value, shape: Value) -> Value:
        at.require(shape.rank in (None, 1), "C1", f"shape is {shape.shape}, not 1D")
        entries = shape.dims()
        if entries is None:
            return data.reshaped(UNKNOWN_RANK)
        target = f"shape [{','.join(map(str, entries))}]"
        at.require(all(n.hi >= -1 for n in entries), "C2", f"{target} has an entry below -1")
        at.require(sum(n == -1 for n in entries) <= 1, "C2", f"{target} has more than one -1")
        copied = [i for i, n in enumerate(entries) if n == 0] if self.special_zero else []
        dims = [n if n.lo >= 0 else Dim.unknown() for n in entries]  # an entry that may be -1 may be any dim
        if data.shape.dims is None:
            return data.reshaped([Dim.unknown() if i in copied else n for i, n in enumerate(dims)])
        at.require(
            all(i < len(data.shape) for i in copied), "C3", f"{target} has a 0 beyond the axes of data {data.shape}"
        )
        for i, (n, dim) in enumerate(zip(dims, data.shape)):
            if i in copied:
                dims[i] = dim
            elif self.special_zero and n.fits(0) and n.hi < dim.hi:  # the entry may be 0
                dims[i] = n.union(dim)
        left = next((i for i, n in enumerate(entries) if n == -1), None)
        whole = [n for i, n in enumerate(data.shape) if i not in copied]
        parts = {i: n for i, n in enumerate(dims) if i not in copied and i != left}
        _cancel(whole, parts, left is not None)
        if left is None:
            left = _only_unknown(parts)
        inferred = Dim(1) if left is None else parts.pop(left, Dim.unknown())
        quotient = _quotient(whole, list(parts.values()))
        fitting = quotient and quotient.meet(inferred)
        if fitting is None:
            known = [n for i, n in enumerate(dims) if i != left or entries[i] != -1]
            drawn = elements({"data": data.shape.dims, "shape": known})
            at.refuse("C4", f"data {data.shape} cannot have {target}: the numbers of elements differ", notes=drawn)
        if left is not None:
            assert fitting is not None
            dims[left] = fitting
        return data.reshaped(dims)

    def prepare(self, request: Request) -> Kernel | None:
        return reshaping(self, request.inputs)

    def run(self, data: np.ndarray, shape: np.ndarray) -> np.ndarray:
        entries = [int(n) for n in shape.tolist()]
        copied = [i for i, n in enumerate(entries) if n == 0] if self.special_zero else []
        dims = [data.shape[i] if i in copied else n for i, n in enumerate(entries)]
        if -1 in dims:  # numpy does not infer -1 beside a dim of 0
            whole = math.prod(n for i, n in enumerate(data.shape) if i not in copied)
            parts = math.prod(n for i, n in enumerate(dims) if i not in copied and n != -1)
            dims[dims.index(-1)] = whole // parts if parts else 1
        try:
            return data.reshape(dims)
        except ValueError:
            raise Refused(
                f"data {list(data.shape)} cannot have the shape {entries}: the numbers of elements differ", "C4"
            ) from None


def _cancel(whole: list[Dim], parts: dict[int, Dim], may_be_zero: bool) -> None:
    """Remove in place the dims that both sides share. A dim that may be 0 is removed only if there is a -1 to infer."""
    for i, n in list(parts.items()):
        twin = next((k for k, d in enumerate(whole) if d.same(n)), None)
        if twin is not None and (n.lo > 0 or (may_be_zero and n != 0)):
            del whole[twin], parts[i]


def _only_unknown(parts: dict[int, Dim]) -> int | None:
    """Return the index of the one unknown part, if the number of elements determines it, else None."""
    unknown = [i for i, n in parts.items() if not n.is_static]
    determined = len(unknown) == 1 and all(n.lo > 0 for i, n in parts.items() if i not in unknown)
    return unknown[0] if determined else None


def _quotient(whole: list[Dim], parts: list[Dim]) -> Dim | None:
    """Return the product of ``whole`` divided by the product of ``parts``, or None if it cannot be an integer."""
    a, b = (math.prod(d.lo for d in dims if d.is_static) for dims in (whole, parts))
    shared = math.gcd(a, b) or 1
    over = product([d for d in whole if not d.is_static]) * (a // shared)
    under = product([d for d in parts if not d.is_static]) * (b // shared)
    if under == 0:  # OpenVINO infers 1 for a -1 beside a 0; the specification does not mention this case
        return Dim(1) if over.fits(0) else None
    if over.term is not None and over.term is under.term:
        return Dim(1)
    if under.lo == 0:
        return Dim.unknown()
    quotient = over // under
    if over.ceil_div(under).lo > quotient.hi:
        return None
    if quotient.is_static:  # so that the term names every dim, not only unknown ones
        return Dim(quotient.lo, quotient.hi, (product(whole) // product(parts)).term)
    return quotient
