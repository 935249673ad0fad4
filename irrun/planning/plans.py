"""The plans of one model: for any inputs, for inputs that recur, and with a step for each layer."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from irrun.inference.propagate import declared_inside
from irrun.model import Model
from irrun.planning.plan import Planning, plan
from irrun.planning.steps import Plan
from irrun.types import Dim, PartialShape

__all__ = ["Plans"]

_Shapes = tuple[PartialShape, ...]
_Sizes = tuple[tuple[int, ...], ...]

_NARROW: Final = 4
"""The most plans for recurring input dims. Making one takes as long as a few runs."""


class Plans:
    """The plans of a model.

    With ``exact`` there is one, in which each layer is a step with its defining kernel. With ``layered`` there is one,
    in which each layer is a step with its fastest kernel.

    Raises the same errors as ``plan``.
    """

    def __init__(self, model: Model, max_memory: int, *, exact: bool, layered: bool) -> None:
        self.model, self.max_memory, self._single = model, max_memory, exact or layered
        self.general: Plan = plan(model, Planning(max_memory, specialise=not exact, fuse=not self._single))
        self._declared: _Shapes = tuple(declared_inside(model, p.id).shape for p in model.parameters)
        self._dynamic = not all(shape.is_static for shape in self._declared)
        self._narrow: dict[_Shapes, Plan] = {}
        self._last: _Sizes = ()
        self._common = self._declared

    @cached_property
    def layered(self) -> Plan:
        """The plan in which each layer is a step of its own, for hooks that observe single layers."""
        return self.general if self._single else plan(self.model, Planning(self.max_memory, fuse=False))

    def recurs(self, shapes: _Sizes) -> bool:
        """Return whether the inputs of the last run had these shapes too."""
        return not self._dynamic or self._last == shapes

    def fitting(self, shapes: _Sizes) -> Plan:
        """Return the plan for inputs of these shapes, and remember the shapes.

        A dynamic model gets a narrower plan for dims that are the same in three consecutive runs. Dims that change
        stay open. For a decoder, this pins the dims of one token, but not the length of the past. If several plans
        fit, the one with the fewest steps is used.
        """
        if self._single or not self._dynamic:
            return self.general
        last, self._last = self._last, shapes
        common, self._common = self._common, _common(self._declared, last, shapes)
        if common == self._common != self._declared and common not in self._narrow and len(self._narrow) < _NARROW:
            pinned = {p.id: shape for p, shape in zip(self.model.parameters, common)}
            self._narrow[common] = plan(self.model, Planning(self.max_memory), pinned, self.general)
        fitting = (p for known, p in self._narrow.items() if all(k.fits(s) for k, s in zip(known, shapes)))
        return min(fitting, key=lambda p: len(p.steps), default=self.general)


def _common(declared: _Shapes, last: _Sizes, now: _Sizes) -> _Shapes:
    """Return the declared shapes, with the dims pinned that are equal in the inputs ``last`` and ``now``."""
    shapes: list[PartialShape] = []
    for shape, a, b in zip(declared, last or [()] * len(now), now):
        if len(a) == len(b):
            dims = shape.dims or tuple(PartialShape.of_rank(len(a)))
            shape = PartialShape(tuple(Dim(n) if n == m else dim for n, m, dim in zip(a, b, dims)))
        shapes.append(shape)
    return tuple(shapes)
