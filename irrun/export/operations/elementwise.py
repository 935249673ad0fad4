"""Arithmetic, comparisons, logic and activations, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from irrun.export.call import Call
from irrun.export.registry import converts

__all__ = ["aligned"]

_FLOATS: Final = "f32 f64"
_NUMBERS: Final = "i32 i64 f32 f64"


def aligned(call: Call, first: int = 0, second: int = 1) -> tuple[str, str]:
    """Return two inputs that ONNX broadcasts as ``auto_broadcast`` says."""
    a, b = call.input(first), call.input(second)
    if call.op.auto_broadcast != "pdpd":
        return a, b
    rank, other = call.rank(first), call.rank(second)
    axis = rank - other if call.op.axis == -1 else call.op.axis
    behind = rank - axis - other
    if behind > 0:
        b = call("Unsqueeze", b, list(range(other, other + behind)))
    elif behind < 0:
        b = call("Squeeze", b, list(range(other + behind, other)))
    return a, b


def _binary(type: str) -> Callable[[Call], str]:
    return lambda call: call(type, *aligned(call))


for _name, _type in {"Add": "Add", "Subtract": "Sub", "Multiply": "Mul"}.items():
    converts(_name, computes=_NUMBERS, wraps=True)(_binary(_type))
for _name, _type in {"Maximum": "Max", "Minimum": "Min"}.items():
    converts(_name, computes="i32 i64 u32 u64 f32 f64")(_binary(_type))


def _comparison(type: str) -> Callable[[Call], str]:
    def convert(call: Call) -> str:
        a, b = aligned(call)
        if call.type.kind == "boolean" and type != "Equal":
            a, b = call.cast(a, "i32"), call.cast(b, "i32")
        return call(type, a, b)

    return convert


for _name, _type in {"Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater",
                     "GreaterEqual": "GreaterOrEqual"}.items():  # fmt: skip
    converts(_name, computes=f"boolean {_NUMBERS}")(_comparison(_type))
converts("Equal", computes=f"boolean string {_NUMBERS}", wraps=True)(_comparison("Equal"))


@converts("NotEqual", computes=f"boolean string {_NUMBERS}", wraps=True)
def not_equal(call: Call) -> str:
    """Not of Equal."""
    return call("Not", call("Equal", *aligned(call)))


@converts("SquaredDifference", computes=_NUMBERS, wraps=True)
def squared_difference(call: Call) -> str:
    """A product of differences."""
    difference = call("Sub", *aligned(call))
    return call("Mul", difference, difference)


@converts("Divide", computes=_NUMBERS)
def divide(call: Call) -> str:
    """Div; integers are rounded down or towards 0, and a quotient by 0 is 0."""
    a, b = aligned(call)
    if call.type.kind == "float":
        return call("Div", a, b)
    is_zero = call("Equal", b, 0)
    divisor = call("Where", is_zero, 1, b)
    rest = call("Mod", a, divisor, fmod=0 if call.op.m_pythondiv else 1)
    quotient = call("Div", call("Sub", a, rest), divisor)
    return call("Where", is_zero, 0, quotient)


@converts("Mod", computes=_NUMBERS)
def mod(call: Call) -> str:
    """The remainder of the truncated quotient; 0 for a remainder by 0."""
    return _remainder(call, fmod=1)


@converts("FloorMod", computes=_NUMBERS)
def floor_mod(call: Call) -> str:
    """The remainder of the floored quotient."""
    if call.type.kind != "float":
        return _remainder(call, fmod=0)
    a, b = aligned(call)
    rest = call("Mod", a, b, fmod=1)
    # the sign of the divisor: a remainder of the other sign moves by one divisor
    differ = call("Less", call("Mul", call("Sign", rest), call("Sign", b)), 0)
    return call("Where", differ, call("Add", rest, b), rest)


def _remainder(call: Call, fmod: int) -> str:
    a, b = aligned(call)
    if call.type.kind == "float":
        return call("Mod", a, b, fmod=1)
    is_zero = call("Equal", b, 0)
    return call("Where", is_zero, 0, call("Mod", a, call("Where", is_zero, 1, b), fmod=fmod))


@converts("Power", computes=_NUMBERS)
def power(call: Call) -> str:
    """Pow."""
    call.require(call.type.kind == "float", f"Pow of {call.type} is computed in floating point by ONNX runtimes")
    return call("Pow", *aligned(call))


for _name, _type in {"LogicalAnd": "And", "LogicalOr": "Or", "LogicalXor": "Xor", "Xor": "Xor"}.items():
    converts(_name)(_binary(_type))


def _bitwise(type: str) -> Callable[[Call], str]:
    def convert(call: Call) -> str:
        if call.type.kind == "boolean":
            return call(type, *aligned(call))
        call.since(18, f"Bitwise{type}")
        return call(f"Bitwise{type}", *aligned(call))

    return convert


for _name in ("And", "Or", "Xor"):
    converts(f"Bitwise{_name}", computes="boolean i8 i16 i32 i64 u8 u16 u32 u64")(_bitwise(_name))


@converts("BitwiseNot", computes="boolean i8 i16 i32 i64 u8 u16 u32 u64")
def bitwise_not(call: Call) -> str:
    """Not of booleans, BitwiseNot of integers."""
    if call.type.kind == "boolean":
        return call("Not", call.input(0))
    call.since(18, "BitwiseNot")
    return call("BitwiseNot", call.input(0))


# -- functions of one tensor ----------------------------------------------------------------------


def _unary(type: str) -> Callable[[Call], str]:
    return lambda call: call(type, call.input(0))


for _name in ("Exp", "Log", "Sqrt", "Sin", "Tanh", "Sigmoid"):
    converts(_name, computes=_FLOATS)(_unary(_name))
for _name in ("Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Erf"):
    converts(_name, computes="f32")(_unary(_name))
converts("SoftPlus", computes="f32")(_unary("Softplus"))
converts("SoftSign", computes="f32")(_unary("Softsign"))
converts("LogicalNot")(_unary("Not"))
converts("Negative", computes="i8 i32 i64 f32 f64")(_unary("Neg"))
converts("IsNaN", computes=_FLOATS)(_unary("IsNaN"))
converts("Abs", computes="i8 i16 i32 i64 u8 u16 u32 u64 f32 f64")(_unary("Abs"))


@converts("Sign", computes="i8 i16 i32 i64 u8 u16 u32 u64 f32 f64")
def sign(call: Call) -> str:
    """Sign, and NaN for NaN."""
    x = call.input(0)
    signs = call("Sign", x)
    return call("Where", call("IsNaN", x), x, signs) if call.type.kind == "float" else signs


def _rounded(type: str) -> Callable[[Call], str]:
    return lambda call: call(type, call.input(0)) if call.type.kind == "float" else call.input(0)


converts("Floor")(_rounded("Floor"))
converts("Ceiling")(_rounded("Ceil"))


@converts("Round")
def round_(call: Call) -> str:
    """Round halves to even, or away from zero: there the truncated ``|x| + 0.5`` with the sign of x."""
    x = call.input(0)
    if call.type.kind != "float":
        return x
    if call.op.mode == "half_to_even":
        return call("Round", x)
    whole = call("Floor", call("Abs", x))
    up = call("GreaterOrEqual", call("Sub", call("Abs", x), whole), 0.5)
    rounded = call("Mul", call("Sign", x), call("Add", whole, call.cast(up, call.type)))
    finite = call("Less", call("Abs", x), math.inf)
    return call("Where", finite, rounded, x)


@converts("ReLU", computes="i32 i64 f32 f64")
def relu(call: Call) -> str:
    """Relu."""
    return call("Relu", call.input(0)) if call.type.kind == "float" else call("Max", call.input(0), 0)


@converts("HSigmoid", computes=_FLOATS)
def hsigmoid(call: Call) -> str:
    """``clip(x + 3, 0, 6) / 6``."""
    return _sixths(call)


def _sixths(call: Call) -> str:
    return call("Div", call("Clip", call("Add", call.input(0), 3), 0, 6), 6)


@converts("HSwish", computes=_FLOATS)
def hswish(call: Call) -> str:
    """``x * clip(x + 3, 0, 6) / 6``."""
    return call("Mul", call.input(0), _sixths(call))


@converts("HardSigmoid", computes=_FLOATS)
def hard_sigmoid(call: Call) -> str:
    """``clip(alpha * x + beta, 0, 1)``."""
    return call("Clip", call("Add", call("Mul", call.input(0), call.input(1)), call.input(2)), 0, 1)


@converts("Mish", computes=_FLOATS)
def mish(call: Call) -> str:
    """Mish, or its arithmetic before operation set 18."""
    x = call.input(0)
    power = call("Exp", call("Min", x, 20))
    power = call("Mul", power, call("Add", power, 2))
    return call("Mul", x, call("Div", power, call("Add", power, 2)))


@converts("Swish", computes=_FLOATS)
def swish(call: Call) -> str:
    """``x * sigmoid(beta * x)``."""
    x = call.input(0)
    return call("Mul", x, call("Sigmoid", call("Mul", x, call.input(1)) if call.given(1) else x))


@converts("Gelu", computes="f32")
def gelu(call: Call) -> str:
    """Gelu, or its arithmetic before operation set 20."""
    x = call.input(0)
    tanh = getattr(call.op, "approximation_mode", "ERF").lower() == "tanh"
    if call.opset >= 20:
        return call("Gelu", x, approximate="tanh" if tanh else "none")
    if tanh:
        cube = call("Mul", call("Mul", x, x), x)
        inner = call("Mul", call("Add", x, call("Mul", cube, 0.044715)), math.sqrt(2 / math.pi))
        factor = call("Tanh", inner)
    else:
        factor = call("Erf", call("Div", x, math.sqrt(2)))
    return call("Mul", call("Mul", x, 0.5), call("Add", factor, 1))


@converts("Elu", computes="f32")
def elu(call: Call) -> str:
    """Elu."""
    return call("Elu", call.input(0), alpha=call.op.alpha)


@converts("Selu", computes="f32 f64")
def selu(call: Call) -> str:
    """``lambda * (x if x > 0 else alpha * (exp(x) - 1))``, whose factors are inputs."""
    x, alpha, factor = (call.input(position) for position in range(3))
    below = call("Mul", alpha, call("Sub", call("Exp", call("Min", x, 0)), 1))
    return call("Mul", factor, call("Where", call("Greater", x, 0), x, below))


@converts("PReLU", computes="i32 i64 f32 f64")
def prelu(call: Call) -> str:
    """``x if x >= 0 else slope * x``; a slope of one axis belongs to the channels."""
    x, slope = call.input(0), call.input(1)
    rank, other = call.rank(), call.rank(1)
    if other == 1 and rank > 1:
        count, channels = call.dim(1, 0), call.dim(0, 1)
        call.require(
            None not in (count, channels) or count == 1, "whether the slope belongs to the channels is not known"
        )
        if count == channels and rank > 2:
            slope = call("Unsqueeze", slope, list(range(1, rank - 1)))
    elif other > rank:
        slope = call("Squeeze", slope, list(range(other - rank)))
    if call.type.kind == "float":
        return call("PRelu", x, slope)
    return call("Where", call("Less", x, 0), call("Mul", x, slope), x)


@converts("Clamp", computes="i32 i64 f32 f64")
def clamp(call: Call) -> str:
    """Clip. Integers are clamped to the integers between the bounds."""
    low, high = call.op.min, call.op.max
    if call.type.kind != "float":
        bound = 1 << (call.type.bits - 1)
        low, high = max(math.ceil(max(low, -bound)), -bound), min(math.floor(min(high, bound - 1)), bound - 1)
    return call("Clip", call.input(0), low, high)


@converts("IsInf", computes="f32 f64")
def is_inf(call: Call) -> str:
    """IsInf."""
    return call(
        "IsInf",
        call.input(0),
        detect_negative=int(call.op.detect_negative),
        detect_positive=int(call.op.detect_positive),
    )


@converts("IsFinite", computes="f32 f64")
def is_finite(call: Call) -> str:
    """Neither infinite nor NaN: the distance to infinity is infinite."""
    return call("Less", call("Abs", call.input(0)), math.inf)


@converts("Select", computes="u8 i32 i64 f32 f64 string boolean", carrier=1)
def select(call: Call) -> str:
    """Where. With pdpd, condition and else follow the axes of then."""
    then, condition = aligned(call, 1, 0)
    return call("Where", condition, then, aligned(call, 1, 2)[1])


@converts("Convert", "ConvertLike")
def convert(call: Call) -> str:
    """Cast."""
    to = call.outputs[0].type
    return call.input(0) if to is call.type else call.cast(call.input(0), to)


@converts("ConvertPromoteTypes")
def convert_promote_types(call: Call) -> list[str]:
    """Cast of both inputs to one type."""
    pairs = ((call.input(n), call.value(n).type, call.outputs[n].type) for n in range(2))
    return [name if own is to else call.cast(name, to) for name, own, to in pairs]


@converts("Atan2", computes="f32")
def atan2(call: Call) -> str:
    """Atan of the quotient, moved by pi to the left half of the plane. The sign of a zero is that of its reciprocal."""
    y, x = aligned(call)
    left, below = (call("Or", call("Less", n, 0), call("Less", call("Reciprocal", n), 0)) for n in (x, y))
    both = [call("And", *(call("Equal", n, 0) for n in (x, y))), call("And", *(call("IsInf", n) for n in (x, y)))]
    quotient = call("Where", both[1], call("Mul", call("Sign", y), call("Sign", x)), call("Div", y, x))
    angle = call("Atan", call("Where", both[0], call("Where", left, call("Neg", y), y), quotient))
    return call("Where", left, call("Add", angle, call("Where", below, -math.pi, math.pi)), angle)


@converts("BitwiseLeftShift", "BitwiseRightShift", computes="u8 u32 u64")
def shift(call: Call) -> str:
    """BitShift of unsigned integers."""
    return call("BitShift", *aligned(call), direction="LEFT" if "Left" in call.op.type else "RIGHT")
