"""What the pages of element-wise operations leave open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import ml_dtypes
import numpy as np

from irrun.opdef import Op
from irrun.specification.undefined.forms import (
    Behaviour,
    Inputs,
    aligned,
    doubles,
    element_type,
    fits,
    is_float,
    is_integer,
    whole,
)

__all__ = ["BEHAVIOURS"]

_MOST_BITS: Final = 64
"""The bits of the widest integer type: a power with a larger exponent overflows, unless its base is -1, 0 or 1."""


def _zero_divisor(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A quotient or remainder whose divisor is 0."""
    divisor = inputs[1]
    return divisor is not None and aligned(op, inputs[0], divisor) == 0


def _operands(op: Op, inputs: Inputs) -> list[np.ndarray]:
    """Return the inputs that are there, as numpy broadcasts them; none if an input is not known."""
    if not inputs or any(array is None for array in inputs):
        return []
    first = inputs[0]
    assert first is not None
    others = [aligned(op, first, array) for array in inputs[1:] if array is not None]
    if op.type == "PReLU" and others[0].ndim == 1 and first.ndim > 1 and len(others[0]) == first.shape[1]:
        others[0] = others[0].reshape(-1, *(1,) * (first.ndim - 2))
    return [first, *others]


# ---------------------------------------------------------------------------------------------
# integers


def _power(base: Any, exponent: Any) -> Any:
    """Return a power of integers, or a number beyond all types instead of a larger one."""
    if exponent < 0:
        return 0
    return base**exponent if abs(base) <= 1 or exponent <= _MOST_BITS else 1 << 2 * _MOST_BITS


_EXACT: Final[Mapping[str, Callable[..., Any]]] = {
    "Abs": abs,
    "Add": lambda a, b: a + b,
    "Divide": lambda a, b: a // b if b else 0,
    "Multiply": lambda a, b: a * b,
    "Negative": lambda a: -a,
    "Power": _power,
    "SquaredDifference": lambda a, b: (a - b) ** 2,
    "Subtract": lambda a, b: a - b,
    "Tan": lambda a: round(math.tan(a)),
}
"""The result of an operation on Python's integers."""


def _integer_overflow(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A result, or the difference that is squared, beyond the range of the integer type."""
    operands = _operands(op, inputs)
    if not operands or not is_integer(operands[0]):
        return False
    to, numbers = element_type(operands[0]), [whole(operand) for operand in operands]
    exact = _EXACT[op.type]
    beyond = ~fits(np.frompyfunc(exact, len(numbers), 1)(*numbers), to)
    if op.type == "SquaredDifference":
        beyond = beyond | ~fits(numbers[0] - numbers[1], to)
    return beyond


_EXACT_AT: Final[Mapping[str, int]] = {
    "Acos": 1, "Acosh": 1, "Asin": 0, "Asinh": 0, "Atan": 0, "Cos": 0, "Cosh": 0, "Erf": 0, "Log": 1, "Sin": 0,
    "Sinh": 0,
}  # fmt: skip
"""The only integer of which the function is an integer."""


def _integer_rounding(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A result that is not an integer, of an operation on integers whose page does not say how it is rounded."""
    operands = _operands(op, inputs)
    if not operands or not is_integer(operands[0]):
        return False
    if op.type in _EXACT_AT:
        return operands[0] != _EXACT_AT[op.type]
    a, b = map(whole, operands)
    if op.type == "Power":
        return np.asarray((b < 0) & (abs(a) != 1), bool)
    if getattr(op, "m_pythondiv", False):
        return False
    return np.asarray((b != 0) & (a % np.where(b == 0, 1, b) != 0), bool)


def _shift(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """A shift by a negative number of bits, by all bits or more, or out of the range of a signed type."""
    operands = _operands(op, inputs)
    if not operands:
        return False
    to, (a, bits) = element_type(operands[0]), map(whole, operands)
    beyond = np.asarray((bits < 0) | (bits >= to.bits), bool)
    if op.type == "BitwiseLeftShift" and to.kind == "int":
        beyond = beyond | ~fits(a * 2 ** np.where(beyond, 0, bits), to)
    return beyond


def _order_of_strings(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """Which of two strings is less than the other."""
    return any(array is not None and array.dtype.kind in "OUT" for array in inputs)


# ---------------------------------------------------------------------------------------------
# floats


def _nan(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """An element for which an input has NaN, in operations whose page does not speak of NaN."""
    elementwise = inputs[:1] if op.type == "Bucketize" else inputs
    operands = _operands(op, [array for array in elementwise if array is not None])
    beyond: bool | np.ndarray = False
    for operand in operands:
        if is_float(operand):
            beyond = beyond | np.isnan(doubles(operand))
    return beyond


def _power_domain(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    infinite = ((np.abs(a) == 1) & np.isinf(b)) | (np.isinf(a) & (b == 0))
    return infinite | ((a < 0) & (b != np.floor(b))) | ((a == 0) & (b <= 0))


def _origin(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    at_the_cut = (y == 0) & np.signbit(y) & (x < 0)
    return ((x == 0) & (y == 0)) | at_the_cut | (np.isinf(x) & np.isinf(y))


_DOMAIN: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "Acos": lambda x: np.abs(x) > 1,
    "Acosh": lambda x: x < 1,
    "Asin": lambda x: np.abs(x) > 1,
    "Atan2": _origin,
    "Atanh": lambda x: np.abs(x) >= 1,
    "Cos": np.isinf,
    "Log": lambda x: x <= 0,
    "Power": _power_domain,
    "Sin": np.isinf,
    "Sqrt": lambda x: x < 0,
    "Tan": np.isinf,
}
"""Where a function has no value, or more than one."""


def _domain(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """An element for which the function has no value; Atanh has one for each integer."""
    operands = _operands(op, inputs)
    if not operands or (op.type == "Atanh" and not is_float(operands[0])):
        return False
    return _DOMAIN[op.type](*map(doubles, operands))


def _inner_elu(x: np.ndarray, alpha: float | np.ndarray) -> np.ndarray:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


_FORMULAS: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "Elu": lambda op, x: _inner_elu(x, op.alpha),
    "FloorMod": lambda op, x, y: np.where(y == 0, 0, x - np.floor(x / y) * y),
    "Gelu": lambda op, x: x * (x != -math.inf),
    "HardSigmoid": lambda op, x, alpha, beta: alpha * x + beta,
    "HSwish": lambda op, x: x * np.clip(x + 3, 0, 6),
    "Mish": lambda op, x: x * (x != -math.inf),
    "Mod": lambda op, x, y: np.where(y == 0, 0, x - np.trunc(x / y) * y),
    "PReLU": lambda op, x, slope: np.where(x < 0, slope * x, x),
    "Selu": lambda op, x, alpha, factor: factor * _inner_elu(x, alpha),
    "SoftSign": lambda op, x: x / (1 + np.abs(x)),
    "Swish": lambda op, x, *beta: x / (1 + np.exp(-(beta[0] if beta else 1) * x)),
}
"""A formula with NaN wherever that of the page multiplies 0 by an infinity, or divides an infinity by another."""


def _indeterminate(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """An element whose formula multiplies 0 by an infinity, or divides or subtracts infinities."""
    operands = _operands(op, [array for array in inputs if array is not None])
    if not operands or not is_float(operands[0]):
        return False
    numbers = [doubles(operand) for operand in operands]
    with np.errstate(all="ignore"):
        beyond = np.isnan(_FORMULAS[op.type](op, *numbers))
    for operand in numbers:
        beyond = beyond & ~np.isnan(operand)
    return beyond


def _approximation(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """An element of Gelu-2 for which its two formulas differ."""
    (data,) = inputs
    if data is None:
        return False
    x = doubles(data)
    with np.errstate(all="ignore"):
        tanh = np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
        errors = np.abs(np.vectorize(math.erf, [float])(x / math.sqrt(2)) - tanh)
        return errors > float(ml_dtypes.finfo(data.dtype).eps)


# ---------------------------------------------------------------------------------------------
# models that irrun takes though their page does not describe them


def _clamp(op: Any, data: np.ndarray | None) -> bool:
    """Return whether the bounds of integers, rounded inwards, are out of order or beyond the type."""
    if data is None or not is_integer(data):
        return False
    to = element_type(data)
    least, greatest = (-(2 ** (to.bits - 1)), 2 ** (to.bits - 1) - 1) if to.kind == "int" else (0, 2**to.bits - 1)
    low = math.ceil(op.min) if math.isfinite(op.min) else op.min
    high = math.floor(op.max) if math.isfinite(op.max) else op.max
    return low > high or low > greatest or high < least


def _select(op: Any, cond: np.ndarray | None, then: np.ndarray | None, otherwise: np.ndarray | None) -> bool:
    """Return whether the elements are no numbers, or ``cond`` would enlarge the shape of the others."""
    if then is None or otherwise is None or cond is None:
        return False
    if not (is_float(then) or is_integer(then)):
        return True
    if op.auto_broadcast != "numpy":
        return False
    shape = np.broadcast_shapes(then.shape, otherwise.shape)
    return np.broadcast_shapes(shape, cond.shape) != shape


def _unsorted(boundaries: np.ndarray) -> bool:
    return bool((boundaries[1:] <= boundaries[:-1]).any()) or bool(np.isnan(doubles(boundaries)).any())


_DESCRIBED: Final[Mapping[str, Callable[..., bool]]] = {
    "Bucketize": lambda op, data, boundaries: boundaries is None or _unsorted(boundaries),
    "Clamp": _clamp,
    "CumSum": lambda op, data, axis=None: axis is not None and axis.ndim > 0,
    "FakeQuantize": lambda op, data, *limits: any(limit is not None and limit.ndim > data.ndim for limit in limits),
    "LogSoftmax": lambda op, data: data.ndim == 0,
    "PReLU": lambda op, data, slope: slope is not None and not 0 < slope.ndim <= max(data.ndim, 1),
    "Select": _select,
    "Selu": lambda op, data, *factors: any(factor is not None and factor.ndim != 1 for factor in factors),
    "SoftMax": lambda op, data: data.ndim == 0 or (op.since == 1 and op.axis == 0),
}
"""Whether the model of an operation is not one that its page describes."""


def _not_pdpd(op: Any, *inputs: np.ndarray | None) -> bool:
    """Return whether the inputs are broadcast as in PaddlePaddle, which the page does not name."""
    return op.auto_broadcast == "pdpd"


def _beyond_the_page(op: Op, inputs: Inputs) -> bool | np.ndarray:
    """Any element of a model that irrun takes though the page excludes it, as the sentence says."""
    if inputs[0] is None:
        return False
    if op.type.startswith("Reduce"):
        return inputs[0].ndim == 0 and inputs[1] is not None and inputs[1].size > 0
    return _DESCRIBED.get(op.type, _not_pdpd)(op, *inputs)


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "approximation": _approximation,
    "beyond-the-page": _beyond_the_page,
    "domain": _domain,
    "indeterminate": _indeterminate,
    "integer-overflow": _integer_overflow,
    "integer-rounding": _integer_rounding,
    "nan-of-element": _nan,
    "order-of-strings": _order_of_strings,
    "shift": _shift,
    "zero-divisor": _zero_divisor,
}
