"""A plan: a flat list of steps over numbered slots, as the executor walks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from irrun.inference.propagate import Values
from irrun.model import Layer, Model
from irrun.opdef import Kernel, Op
from irrun.types import ElementType

__all__ = ["Plan", "Step"]


@dataclass(frozen=True, slots=True)
class Step:
    """One call: ``kernel`` takes the slots of ``reads`` (-1: absent) and fills those of ``writes``."""

    layer: Layer
    op: Op
    kernel: Kernel
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    dynamic: bool
    """Whether it is checked before its kernel runs, since shapes, or contents that shapes may follow from, are
    known only then."""
    needed: Mapping[str, Any]
    """What ``op`` takes as keywords."""
    bodies: Mapping[str, Plan]
    layers: tuple[Layer, ...]
    """All that it computes, ``layer`` the last of them."""
    own_inputs: bool = True
    """Whether ``reads`` are what ``layer`` reads: not where several layers are joined, or values are in another
    order."""
    out: tuple[tuple[int, ...], np.dtype] | None = None
    """The shape and type of the array that the kernel is given to fill."""
    frees: tuple[int, ...] = ()
    """Slots that nobody reads afterwards."""
    passed: set[object] = field(default_factory=set, compare=False)
    """Of a dynamic step: what it was checked with already."""


@dataclass(frozen=True)
class Plan:
    """``parameters`` and ``results`` are slots in file order; ``constants`` are filled before a run."""

    model: Model
    steps: tuple[Step, ...]
    slots: int
    constants: Mapping[int, np.ndarray]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    values: Values
    types: tuple[ElementType, ...]
    """The element type of each slot."""

    @cached_property
    def heavy(self) -> bool:
        """Whether there may be matrix products that BLAS would share among threads."""
        large = any(array.size >= _LARGE for array in self.constants.values())
        return large or any(step.kernel.flops >= _MANY or step.dynamic or step.bodies for step in self.steps)


_LARGE: Final = 1 << 16
"""Elements of a matrix,"""
_MANY: Final = 1 << 20
"""or multiplications and additions, from which on a library may do so."""
