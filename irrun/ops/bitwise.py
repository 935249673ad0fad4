"""Logic and shifts on the bits of integers.  Spec: bitwise/bitwise-{and,or,xor,not}-13, bitwise-*-shift-15."""

from functools import partial

import numpy as np

from irrun.ops._elementwise import binary
from irrun.ops._unary import unary

_bitwise = partial(binary, since=13, types="boolean int")
# "If the number of shifts is negative, or if it equals or exceeds the total number of bits […], the behavior can be
# undefined": here it is as in numpy, which shifts all bits out
_shift = partial(binary, since=15, types="int")

And = _bitwise("BitwiseAnd", np.bitwise_and, doc="The bits that are set in both inputs.", spec="bitwise/bitwise-and-13")
Or = _bitwise(
    "BitwiseOr", np.bitwise_or, doc="The bits that are set in at least one input.", spec="bitwise/bitwise-or-13"
)
Xor = _bitwise(
    "BitwiseXor", np.bitwise_xor, doc="The bits that are set in exactly one input.", spec="bitwise/bitwise-xor-13"
)
Not = unary(
    "BitwiseNot", np.invert, since=13, types="boolean int", exact=True,
    doc="The bits that are not set.", spec="bitwise/bitwise-not-13",
)  # fmt: skip
LeftShift = _shift("BitwiseLeftShift", np.left_shift, doc="``a << b``.", spec="bitwise/bitwise-left-shift-15")
RightShift = _shift(
    "BitwiseRightShift", np.right_shift, doc="``a >> b``, which keeps the sign.", spec="bitwise/bitwise-right-shift-15"
)
