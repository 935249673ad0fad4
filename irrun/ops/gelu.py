"""Gelu: Gaussian error linear unit.  Spec: activation/gelu-{2,7}."""

import math
from collections.abc import Callable

import numpy as np

from irrun.kernels.elementwise import gelu_erf, gelu_tanh, in_blocks, out_of
from irrun.kernels.erf import erf
from irrun.opdef import Value, attr, op
from irrun.ops._unary import Unary


@op("Gelu", since=7, spec="activation/gelu-7")
class Gelu7(Unary):
    """Compute ``x * Φ(x)``. Φ is computed by the error function or approximated with tanh."""

    approximation_mode = attr.choice("erf", "tanh", default="erf")
    types = {"T": "float"}

    def kernel(self, x: np.ndarray) -> np.ndarray:
        if self.approximation_mode == "erf":
            return _by_erf(x)
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    def fast(self, data: Value) -> Callable[..., np.ndarray]:
        return in_blocks(gelu_tanh) if self.approximation_mode == "tanh" else _fast_by_erf(data)


@op("Gelu", since=2, spec="activation/gelu-2")
class Gelu2(Unary):
    """Compute ``x * Φ(x)`` with the error function."""

    types = {"T": "float"}

    def kernel(self, x: np.ndarray) -> np.ndarray:
        return _by_erf(x)

    def fast(self, data: Value) -> Callable[..., np.ndarray]:
        return _fast_by_erf(data)


def _by_erf(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + erf(x * x.dtype.type(math.sqrt(0.5))))


def _fast_by_erf(data: Value) -> Callable[..., np.ndarray]:
    return in_blocks(gelu_erf) if data.type.dtype == np.float32 else out_of(_by_erf)
