"""Arithmetic and activations of one tensor, element by element.  Spec: {arithmetic,activation,comparison}/…"""

import math
from functools import partial

import numpy as np

from irrun.kernels.cast import is_float, limits, plain
from irrun.kernels.elementwise import hsigmoid, hswish, in_blocks, mish, relu, sigmoid, soft_plus
from irrun.kernels.erf import erf, erf_into, erfinv
from irrun.opdef import Formula, Site, Value
from irrun.ops._unary import Unary, unary
from irrun.types import ELEMENT_TYPES, Dim, ElementType

_BOOLEAN = ELEMENT_TYPES["boolean"]


def _ceiling(x: np.ndarray) -> np.ndarray:
    return np.ceil(x) if is_float(x) else x


def _floor(x: np.ndarray) -> np.ndarray:
    return np.floor(x) if is_float(x) else x


def _same(x: Dim) -> Dim:
    return x


def _abs(x: Dim) -> Dim:
    return x if x.lo >= 0 else -x if x.hi <= 0 else Dim(0, (-x).max(x).hi)


def _relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.zeros((), x.dtype))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _mish(x: np.ndarray) -> np.ndarray:
    """Return ``x * tanh(softplus(x))``, written with a single exponential instead of a logarithm and a tanh."""
    power = np.exp(np.minimum(x, 20))
    power *= power + 2
    return x * (power / (power + 2))


def _soft_plus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _hsigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(x + 3, 0, 6) / 6


_of_floats = partial(unary, types="float")

Abs = unary("Abs", np.abs, _abs, exact=True, doc="``|x|``.", spec="arithmetic/abs-1")
Ceiling = unary(
    "Ceiling", _ceiling, _same, exact=True, fast=np.ceil,
    doc="Compute the least integer that is not less than x.", spec="arithmetic/ceiling-1",
)  # fmt: skip
Floor = unary(
    "Floor", _floor, _same, exact=True, fast=np.floor,
    doc="Compute the greatest integer that is not greater than x.", spec="arithmetic/floor-1",
)  # fmt: skip
Negative = unary(
    "Negative", np.negative, Dim.__neg__, exact=True, types="signed", doc="``-x``.", spec="arithmetic/negative-1"
)
Sign = unary("Sign", np.sign, exact=True, doc="Return -1, 0 or 1, and NaN for NaN.", spec="arithmetic/sign-1")

Exp = _of_floats("Exp", np.exp, doc="e to the power of x.", spec="activation/exp-1")
Log = unary("Log", np.log, doc="The natural logarithm.", spec="arithmetic/log-1")
Sqrt = unary("Sqrt", np.sqrt, doc="The square root.", spec="arithmetic/sqrt-1")
Erf = unary(
    "Erf", erf, fast=in_blocks(erf_into),
    doc="The error function.", spec="arithmetic/erf-1",
)  # fmt: skip
ErfInv = _of_floats(
    "ErfInv",
    erfinv,
    doc="Compute y with erf(y) = x: ±Inf for ±1, and NaN beyond.",
    spec="arithmetic/erfinv-17",
    since=17,
)

Sin = unary("Sin", np.sin, doc="The sine.", spec="arithmetic/sin-1")
Cos = unary("Cos", np.cos, doc="The cosine.", spec="arithmetic/cos-1")
Tan = unary("Tan", np.tan, doc="The tangent.", spec="arithmetic/tan-1")
Asin = unary("Asin", np.arcsin, doc="The inverse sine.", spec="arithmetic/asin-1")
Acos = unary("Acos", np.arccos, doc="The inverse cosine.", spec="arithmetic/acos-1")
Atan = unary("Atan", np.arctan, doc="The inverse tangent.", spec="arithmetic/atan-1")
Sinh = unary("Sinh", np.sinh, doc="The hyperbolic sine.", spec="arithmetic/sinh-1")
Cosh = unary("Cosh", np.cosh, doc="The hyperbolic cosine.", spec="arithmetic/cosh-1")
Tanh = unary("Tanh", np.tanh, doc="The hyperbolic tangent.", spec="arithmetic/tanh-1")
Asinh = unary("Asinh", np.arcsinh, doc="The inverse hyperbolic sine.", spec="arithmetic/asinh-3", since=4)
Acosh = unary("Acosh", np.arccosh, doc="The inverse hyperbolic cosine.", spec="arithmetic/acosh-3", since=4)


class _Atanh(Unary):
    """Base of Atanh, which has only the result for 0 among the integers."""

    def run(self, data: np.ndarray) -> np.ndarray:
        element_type = ElementType.of(data.dtype)
        if element_type is None or not element_type.is_integer:
            return super().run(data)
        out = np.zeros_like(data)
        for end, where in zip(limits(element_type), (plain(data) < 0, plain(data) > 0)):
            out[where] = end
        return out


Atanh = unary(
    "Atanh", np.arctanh, base=_Atanh, since=4, spec="arithmetic/atanh-3",
    doc="The inverse hyperbolic tangent. For integers, the least number below 0, and the greatest above.",
)  # fmt: skip


class _AtLeastZero(Unary):
    """Base of ReLU: with its formula, another kernel may compute it in its own pass."""

    def formula(self) -> Formula:
        return "clamp", 0, math.inf


# OpenVINO's CPU plugin gives 0 for ReLU and HSigmoid of NaN
ReLU = unary(
    "ReLU", _relu, lambda x: x.max(0), exact=True, base=_AtLeastZero, fast=relu,
    doc="``max(x, 0)``.", spec="activation/relu-1",
)  # fmt: skip
Sigmoid = _of_floats(
    "Sigmoid", _sigmoid, fast=in_blocks(sigmoid),
    doc="``1 / (1 + exp(-x))``.", spec="activation/sigmoid-1",
)  # fmt: skip
HSigmoid = _of_floats(
    "HSigmoid", _hsigmoid, since=5, fast=in_blocks(hsigmoid),
    doc="``min(max(x + 3, 0), 6) / 6``.", spec="activation/hsigmoid-5",
)  # fmt: skip
HSwish = _of_floats(
    "HSwish", lambda x: x * _hsigmoid(x), since=4, fast=in_blocks(hswish),
    doc="``x * min(max(x + 3, 0), 6) / 6``.", spec="activation/hswish-4",
)  # fmt: skip
Mish = _of_floats(
    "Mish", _mish, since=4, fast=in_blocks(mish),
    doc="``x * tanh(log(exp(x) + 1))``.", spec="activation/mish-4",
)  # fmt: skip
SoftPlus = _of_floats(
    "SoftPlus", _soft_plus, since=4, fast=in_blocks(soft_plus),
    doc="``log(exp(x) + 1)``.", spec="activation/softplus-4",
)  # fmt: skip
SoftSign = _of_floats(
    "SoftSign", lambda x: x / (1 + np.abs(x)), doc="``x / (1 + |x|)``.", spec="activation/softsign-9", since=9
)


class _Test(Unary):
    """Base of the tests of floats, whose output is boolean."""

    def result(self, data: Value) -> np.dtype:
        return _BOOLEAN.dtype

    def infer(self, at: Site, data: Value) -> Value:
        return data.typed(_BOOLEAN)

    def run(self, data: np.ndarray) -> np.ndarray:
        return np.asarray(self.kernel(data))


_test = partial(_of_floats, base=_Test, since=10)

IsFinite = _test("IsFinite", np.isfinite, doc="Whether x is neither infinite nor NaN.", spec="comparison/isfinite-10")
IsNaN = _test("IsNaN", np.isnan, doc="Whether x is NaN.", spec="comparison/isnan-10")
