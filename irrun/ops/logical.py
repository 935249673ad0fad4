"""Logic on boolean tensors, element by element.  Spec: logical/logical-{and,or,xor,not}-1."""

from functools import partial

import numpy as np

from irrun.ops._elementwise import binary
from irrun.ops._unary import unary
from irrun.types import Dim

_logical = partial(binary, types="boolean")

And = _logical("LogicalAnd", np.logical_and, Dim.min, doc="Whether both inputs are true.", spec="logical/logical-and-1")
Or = _logical(
    "LogicalOr", np.logical_or, Dim.max, doc="Whether at least one input is true.", spec="logical/logical-or-1"
)

LogicalXor2 = _logical(
    "LogicalXor", np.logical_xor, since=2, doc="Whether exactly one input is true.", spec="logical/logical-xor-1"
)
# OpenVINO also reads LogicalXor in opset1, where it writes Xor
LogicalXor1 = _logical(
    "LogicalXor", np.logical_xor, doc="Whether exactly one input is true.", spec="logical/logical-xor-1"
)
Xor = _logical("Xor", np.logical_xor, doc="Whether exactly one input is true.", spec="logical/logical-xor-1")


def _not(x: Dim) -> Dim:
    """Return the range of the results for elements in the range ``x``."""
    if x == 0:
        return Dim(1)
    return Dim(0, 1) if x.fits(0) else Dim(0)


LogicalNot = unary(
    "LogicalNot", np.logical_not, _not, exact=True, types="boolean",
    doc="Whether the element is false.", spec="logical/logical-not-1",
)  # fmt: skip
