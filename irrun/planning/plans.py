"""The plans of one model: for any inputs, for inputs that recur, and with a step for each layer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Final

from irrun.base.compiling import NotCompiled
from irrun.base.processor import has_flag, may_use_tiles
from irrun.base.thresholds import always
from irrun.fast import available, never_compiles
from irrun.inference.propagate import declared_inside
from irrun.model import Model
from irrun.opdef import Operands, Precision, Value
from irrun.planning.patterns import is_quantised
from irrun.planning.plan import plan
from irrun.planning.steps import Plan, Planning
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["Plans", "operands", "planning"]

_Sizes = tuple[tuple[int, ...], ...]
_Common = tuple[tuple[int | None, ...] | None, ...]
"""The dims that the inputs of several runs have in common, and None for others; None in place of those of two ranks."""

_NARROW: Final = 4
"""The most plans for recurring input dims. Making one takes as long as a few runs."""

_COMPILED: Final = 1 << 22
"""The least bytes of constants, or of the largest value, for which kernels are linked in each process, and compiled at
their first use, which takes seconds."""
_MADE_AHEAD: Final = 1 << 18
"""The same where nothing is ever compiled: to load the kernels takes 0.05 s, and saves half of each run."""
_WEIGHTS: Final = 2
"""Compiled kernels multiply by matrices and filters, which must make up at least one part in so many of the
constants."""


def planning(
    model: Model, max_memory: int, max_weights_memory: int | None = None, precision: Precision = "f32"
) -> Planning:
    """Return how a model is planned where nothing else is asked for.

    By default, unpacked weights may take half of ``max_memory``. See ``irrun.compile`` for ``precision``.
    """
    weights = max_memory // 2 if max_weights_memory is None else max_weights_memory
    size = 0 if model.weights is None else model.weights.data.nbytes
    if _weights(model) * _WEIGHTS < size and not is_quantised(model):
        size = 0
    size = max(size, _largest(model))
    pays = size >= _COMPILED or (size >= _MADE_AHEAD and never_compiles())
    compiled = (always() or pays) and available()
    return Planning(max_memory, weights, compiled=compiled, rounds=operands(precision))


def operands(precision: Precision) -> frozenset[Operands]:
    """Return to what ``precision`` rounds operands: with ``auto``, to what this processor has instructions for.

    With tiles, that is bf16 alone, because the tiles multiply bf16 faster than vectors multiply i8.
    """
    if precision == "auto" and may_use_tiles():
        return frozenset({"bf16"})
    if precision == "auto":
        return frozenset(name for name, flags in _INSTRUCTIONS.items() if any(map(has_flag, flags)))
    return frozenset({_NAMED[precision]} if precision in _NAMED else ())


_INSTRUCTIONS: Final[Mapping[Operands, tuple[str, ...]]] = {
    "bf16": ("avx512_bf16",),
    "i8": ("avx512_vnni", "avx_vnni", "asimddp"),
}
"""The flags of processors that multiply such operands faster than f32."""
_NAMED: Final[Mapping[Precision, Operands]] = {"bf16": "bf16", "int8-activations": "i8"}


def _largest(model: Model) -> int:
    """Return the bytes of the largest value that a layer declares, except constants."""
    largest = 0
    for layer in model.layers.values():
        if layer.type == "Const":
            continue
        for port in layer.outputs:
            shape = None if port.shape is None else port.shape.static
            if shape is not None and port.type is not None:
                largest = max(largest, port.type.nbytes(math.prod(shape)))
    return largest


def _weights(model: Model) -> int:
    """Return the bytes of the constants that may be matrices or filters. Matrices of integers may have a third axis."""
    size = 0
    for layer in model.layers.values():
        if layer.type != "Const":
            continue
        # the attributes, because a reshaped model has ports without shapes
        declared = PartialShape.parse(layer.attributes.get("shape", "..."))
        shape = None if declared is None else declared.static
        type = ElementType.parse(layer.attributes.get("element_type", ""))
        if type is not None and shape is not None and len(shape) >= 2:
            size += type.nbytes(math.prod(shape))
    return size


class Plans:
    """The plans of a model.

    With ``exact`` there is one, in which each layer is a step with its defining kernel. With ``layered`` there is one,
    in which each layer is a step with its fastest kernel. ``rewrite`` gets the plan of ``exact`` and returns the only
    one. Raises the same errors as ``plan``.
    """

    def __init__(
        self, model: Model, max_memory: int, *, exact: bool, layered: bool, rewrite: Callable[[Plan], Plan] | None,
        repeatable: bool, max_weights_memory: int | None, precision: Precision = "f32",
    ) -> None:  # fmt: skip
        self.model, self._how = model, planning(model, max_memory, max_weights_memory, precision)
        self._single = exact or layered or rewrite is not None
        plain = replace(self._how, specialise=False, fuse=False, compiled=False)
        how = plain if exact or rewrite is not None else replace(self._how, fuse=not layered)
        made = self._plan(how)
        self.general: Plan = made if rewrite is None else rewrite(made)
        self._declared = tuple(declared_inside(model, p.id).shape for p in model.parameters)
        self._dynamic = not all(shape.is_static for shape in self._declared)
        self._narrows = self._dynamic and not self._single and not repeatable
        self._narrow: dict[_Common, Plan] = {}
        self._last: _Sizes = ()
        self._common: _Common = ()
        self._settled: tuple[_Sizes, Plan] | None = None
        """The shapes that have recurred, and their plan, which does not change while they recur."""

    @property
    def all(self) -> tuple[Plan, ...]:
        """The plan for inputs of any shape, and those that were made for recurring dims."""
        return self.general, *self._narrow.values()

    @cached_property
    def layered(self) -> Plan:
        """The plan in which each layer is a step of its own, for hooks that observe single layers."""
        return self.general if self._single else self._plan(replace(self._how, fuse=False))

    def _plan(self, how: Planning, pinned: Mapping[int, Value] | None = None, general: Plan | None = None) -> Plan:
        """Return a plan, without compiled kernels if one is needed that cannot be compiled here."""
        try:
            return plan(self.model, how, pinned, general)
        except NotCompiled as missing:
            self._decline(missing)
            return plan(self.model, replace(how, compiled=False), pinned, general)

    def without_compiled(self, missing: NotCompiled) -> None:
        """Replace all plans by those without compiled kernels: one of these is missing. Warn about it."""
        self._decline(missing)
        self.general, self._narrow, self._settled = plan(self.model, self._how), {}, None
        self.__dict__.pop("layered", None)

    def _decline(self, missing: NotCompiled) -> None:
        self._how = replace(self._how, compiled=False)
        message = f"numpy computes in place of compiled kernels: irrun-fast has no {missing}; install numba"
        warnings.warn(message, RuntimeWarning, stacklevel=2)

    def recurs(self, shapes: _Sizes) -> bool:
        """Return whether the inputs of the last run had these shapes too."""
        return not self._dynamic or self._last == shapes

    def fitting(self, shapes: _Sizes) -> Plan:
        """Return the plan for inputs of these shapes, and remember the shapes.

        A dynamic model gets a narrower plan for dims that are the same in three consecutive runs. Dims that change
        stay open. For a decoder, this pins the dims of one token, but not the length of the past. If several plans
        fit, the one with the fewest steps is used.
        """
        if not self._narrows:
            self._last = shapes
            return self.general
        settled = self._settled  # another thread may change it
        if settled is not None and settled[0] == shapes == self._last:
            return settled[1]
        last, self._last = self._last, shapes
        common, self._common = self._common, tuple(map(_equal, last or [()] * len(shapes), shapes))
        if common == self._common and common not in self._narrow and len(self._narrow) < _NARROW:
            pinned = tuple(map(_pinned, self._declared, common))
            if pinned != self._declared:
                given = {
                    p.id: Value(declared_inside(self.model, p.id).type, shape)
                    for p, shape in zip(self.model.parameters, pinned)
                }
                # a new dict, because another thread may be going through the old one
                self._narrow = {**self._narrow, common: self._plan(self._how, given, self.general)}
        fitting = (p for known, p in self._narrow.items() if all(map(_fits, known, shapes)))
        chosen = min(fitting, key=lambda p: len(p.steps), default=self.general)
        self._settled = (shapes, chosen) if last == shapes and common == self._common else None
        return chosen


def _equal(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int | None, ...] | None:
    """Return what two shapes of an input have in common: see ``_Common``."""
    return tuple([n if n == m else None for n, m in zip(a, b)]) if len(a) == len(b) else None


def _pinned(declared: PartialShape, common: tuple[int | None, ...] | None) -> PartialShape:
    """Return a declared shape with the dims that are common to several inputs."""
    if common is None:
        return declared
    dims = declared.dims or tuple(PartialShape.of_rank(len(common)))
    return PartialShape(tuple(dim if n is None else Dim(n) for n, dim in zip(common, dims)))


def _fits(common: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> bool:
    """Return whether an input that fits the model has the dims that others had in common."""
    return common is None or (len(common) == len(shape) and all(n in (None, m) for n, m in zip(common, shape)))
