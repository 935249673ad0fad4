"""The seam of the compiled kernels: numba compiles them for the processor at hand, or irrun-fast holds them.

The planner asks ``available`` once for each plan that is large enough. For such a plan, it asks ``kernel`` before it
asks an operation for a kernel of numpy, and has ``join`` join the steps. Nobody else imports anything of this folder,
and operations do not know it. ``irrun.fast`` itself imports nothing of numba; the modules beside it are imported for
the first such plan.
"""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, TypeVar

from irrun.base.forking import UNFORKED
from irrun.opdef import Kernel, Op, Request, is_custom

__all__ = [
    "OFFERS", "available", "forms", "has_integers", "in_integers", "join", "kernel", "never_compiles", "rotation",
]  # fmt: skip

_Flow = TypeVar("_Flow")

OFFERS: Final[Mapping[str, str]] = {
    "AvgPool": "pooling",
    "Concat": "copying",
    "Convolution": "convolution.offers",
    "ConvolutionBackpropData": "convolution.offers",
    "Erf": "activations",
    "Exp": "activations",
    "FakeQuantize": "quantization",
    "GRUCell": "recurrence",
    "GRUSequence": "recurrence",
    "Gather": "copying",
    "Gelu": "activations",
    "GroupConvolution": "convolution.offers",
    "GroupConvolutionBackpropData": "convolution.offers",
    "GroupNormalization": "groups",
    "Interpolate": "copying",
    "LSTMCell": "recurrence",
    "LSTMSequence": "recurrence",
    "LogSoftmax": "normalization",
    "MVN": "normalization",
    "MatMul": "product",
    "MaxPool": "pooling",
    "Multiply": "arithmetic",
    "PagedAttentionExtension": "tokens.paged",
    "RMS": "normalization",
    "ReduceMean": "reductions",
    "ReduceSum": "reductions",
    "ScaledDotProductAttention": "attention.attend",
    "Sigmoid": "activations",
    "SoftMax": "normalization",
    "Swish": "activations",
    "Tanh": "activations",
}
"""The module whose ``offer(op, request)`` chooses the compiled kernel of an operation, by the operation's type."""


_OTHER_KERNELS: Final = (
    "numpy computes in place of compiled kernels: irrun-fast holds none for this processor, or those of another "
    "version of irrun; install the irrun-fast of this version, or numba"
)


@cache
def available() -> bool:
    """Return whether kernels are compiled here: by numba, or ahead of time (see ``machine.ahead``).

    Warn if the kernels that are installed belong to another irrun, or if irrun does not know how this Python and numpy
    hold arrays. IRRUN_FAST=0 declines compiled kernels.
    """
    if os.environ.get("IRRUN_FAST", "") == "0":
        return False
    if importlib.util.find_spec("numba") is None:
        ahead = _module("machine.ahead")
        if ahead.library() is None:
            if ahead.is_installed():
                warnings.warn(_OTHER_KERNELS, RuntimeWarning, stacklevel=2)
            return False
    structures = _module("machine.structures")
    if not structures.are_known():
        warnings.warn(structures.UNKNOWN, RuntimeWarning, stacklevel=2)
        return False
    return True


@cache
def never_compiles() -> bool:
    """Return whether all kernels here were made ahead of time, so that even a small model does not wait for them."""
    return importlib.util.find_spec("numba") is None and _module("machine.ahead").library() is not None


def forms() -> Mapping[str, Mapping[str, str]]:
    """Return the instruction sets for which kernels can be compiled here, with environment variables for each.

    A process with these variables compiles every kernel, for no more than the instruction set.
    """
    if not available():
        return {}
    return {form: {"IRRUN_FAST": "always", **own} for form, own in _module("machine.forms").FORMS.items()}


def kernel(op: Op, request: Request) -> Kernel | None:
    """Return the compiled kernel of an operation for what is known of a layer, or None if there is none.

    The arguments are those of ``Op.prepare``. Operations of other packages have no compiled kernels.
    """
    is_foreign = is_custom(type(op)) and not type(op).__module__.startswith("irrun.")
    module = None if is_foreign else OFFERS.get(op.type)
    return None if module is None else _module(module).offer(op, request)


def rotation() -> Callable[..., Any]:
    """Return the compiled form of ``kernels.attention.rotated``."""
    return _module("tokens.rotary").rotate


def join(flow: _Flow, context: object) -> _Flow:
    """Return a flow of steps in which compiled kernels compute several steps in one.

    The arguments are the planner's ``Flow`` and ``Context``, which stand above this module.
    """
    return _module("passes").join(flow, context)


def in_turn(flow: _Flow, context: object) -> _Flow:
    """Return a flow in which one step does the machine code of several: see ``join``."""
    return _module("passes").join_turns(flow, context)


def has_integers() -> bool:
    """Return whether the processor has instructions for products of bytes, so that ``in_integers`` uses them."""
    return _module("integers.dots").DOT is not None


def in_integers(flow: _Flow, context: object) -> _Flow:
    """Return a flow of steps that compute in integers where the file rounds to integers: see ``join``."""
    return _module("integers.passing").to_integers(flow, context)


def _module(name: str) -> Any:
    """Return a module of this folder. A process cannot fork while it is imported."""
    with UNFORKED:
        return import_module(f"irrun.fast.{name}")
