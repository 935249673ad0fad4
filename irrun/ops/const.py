"""Const: a tensor whose values lie in the .bin.  Spec: infrastructure/constant-1."""

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from irrun.diagnostics import Refused
from irrun.model.weights import Weights, is_unpacked
from irrun.opdef import Op, Site, Value, attr, op
from irrun.types import ElementType


@op("Const", since=1, spec="infrastructure/constant-1")
class Const(Op):
    """Read ``size`` bytes of the .bin at ``offset`` as a tensor of ``element_type`` and ``shape``.

    C1  ``offset`` and ``size`` lie within the .bin.
    C2  ``size`` is at least the number of bytes that ``shape`` and ``element_type`` need.
    C3  The offsets of a string tensor are in ascending order, from 0 on.
    C4  ``shape`` is static.
    """

    # IR v10 files of 2020 may lack it: the precision of the output port is used instead
    element_type = attr.element_type(default=None)
    shape = attr.shape(static=True)
    offset = attr.int(size=True)
    size = attr.int(size=True)
    needs = ("weights",)

    def infer(self, at: Site, *, weights: Weights | None) -> Value:
        element_type = self.element_type or (at.declared[0] if at.declared else None)
        shape = self.shape.static
        at.require(shape is not None, "C4", f"shape {self.shape} is not static")
        assert shape is not None
        at.require(
            element_type is not None,
            "C2",
            "the layer has neither the attribute element_type nor a precision of its port",
        )
        assert element_type is not None
        if weights is None:
            return Value(element_type, self.shape)
        if is_unpacked(element_type) and self.size > _UNPACKED:
            weights.require(self.offset, self.size, element_type, shape)
            return Value(element_type, self.shape)  # the planner unpacks it, if a run reads it
        return Value(element_type, self.shape, weights.tensor(self.offset, self.size, element_type, shape))

    def doubts(self, at: Site, *, weights: Weights | None) -> Iterator[Refused]:
        element_type, shape = self.element_type or (at.declared[0] if at.declared else None), self.shape.static
        if element_type is None or element_type.bits == 0 or shape is None:
            return
        needed = element_type.nbytes(math.prod(shape))
        if self.size > max(needed, 1):  # OpenVINO writes one byte for a tensor without elements
            message = f"size is {self.size}, but shape {self.shape} of {element_type} takes only {needed} bytes"
            yield Refused(message, "C2", f'write size="{needed}" or correct the shape', "IR508")

    def run(self, *, weights: Weights, element_type: ElementType | None = None) -> np.ndarray:
        element_type = element_type or self.element_type
        assert element_type is not None
        return weights.tensor(self.offset, self.size, element_type, self.shape.static or ())


_UNPACKED: Final = 1 << 12
"""The most bytes of a constant that inference unpacks. Views of the .bin take no memory, but an unpacked array may take
eight times as much as its bytes, and any number of constants may share their bytes."""
