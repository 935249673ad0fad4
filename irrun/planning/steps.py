"""A plan: a flat list of steps over numbered slots, which the executor runs in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from irrun.inference.propagate import Values
from irrun.model import Layer, Model
from irrun.opdef import Kernel, Op, Operands, Packing
from irrun.types import ElementType

__all__ = ["UNCHOSEN", "Part", "Plan", "Planning", "Step"]


def _unchosen(*_: Any) -> Any:
    raise AssertionError("no pass has chosen the kernel of a step")


UNCHOSEN: Final = Kernel(_unchosen, packing=Packing((1,)))
"""The kernel of a step until a pass chooses one: to choose two, and pack the weights for both, would take memory."""


class Part(NamedTuple):
    """Layers of a step that one of its kernels computes, and how long that has taken, in a unit of the step."""

    layers: tuple[Layer, ...]
    kernel: Kernel
    bytes: int
    """The bytes of inputs and outputs."""
    time: float


@dataclass(frozen=True, slots=True)
class Step:
    """One call: ``kernel`` reads the slots ``reads`` (-1 for an absent input) and fills the slots ``writes``."""

    layer: Layer
    op: Op
    kernel: Kernel
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    dynamic: bool
    """Whether the executor applies the shape rule before it runs the kernel, because shapes, or contents on which
    shapes may depend, are known only at run time."""
    needed: Mapping[str, Any]
    """The keyword arguments of ``op``: see ``Op.needs``."""
    bodies: Mapping[str, Plan]
    """The plans of the bodies of ``layer``, by tag."""
    layers: tuple[Layer, ...]
    """All layers that the step computes; ``layer`` is the last of them."""
    own_inputs: bool = True
    """Whether ``reads`` are the inputs of ``layer``. They are not if layers are fused or values have another layout."""
    updates: tuple[tuple[int, str], ...] = ()
    """The inputs that the step overwrites (``Op.updates``): the position of each, and the name of the Parameter that
    feeds it, or an empty text if another layer feeds it. The kernel returns the new arrays behind its outputs."""
    precision: Operands = "f32"
    """The precision to which the step rounds the inputs of ``Op.rounded``."""
    holds: tuple[int, ...] = ()
    """The slots of constants that the kernel holds, so that it need not be passed them."""
    grows: tuple[tuple[int, int], ...] = ()
    """The slots of the old and the new value of each variable to which the step appends; -1 for an old one that another
    step reads."""
    parts: Callable[[], Sequence[Part]] | None = None
    """Returns the parts of a step of several kernels, and how long each took in the last run of this thread, or 0."""
    out: tuple[tuple[tuple[int, ...], np.dtype], ...] = ()
    """The shape and dtype of each array that the executor passes as ``out=``; none if the kernel allocates them."""
    out_bytes: int = 0
    """The bytes of these arrays."""
    frees: tuple[int, ...] = ()
    """The slots that no later step reads."""
    passed: dict[object, int] = field(default_factory=dict, compare=False)
    """The inputs with which a dynamic step has passed its check, as ``checked`` describes them, with its result."""

    def checked(self, inputs: Sequence[np.ndarray | None], check: Callable[..., int], *more: Any) -> int:
        """Return ``check(self, inputs, *more)``, or what it was for inputs of the same dtypes, shapes and integers.

        Only integers of rank 0 and 1 are compared by contents, because shapes may depend on them.
        """
        key = tuple(
            None if a is None else (a.dtype, a.shape, a.tobytes() if a.dtype.kind in "iu" and a.ndim < 2 else None)
            for a in inputs
        )
        result = self.passed.get(key)
        if result is None:
            result = check(self, inputs, *more)
            if len(self.passed) >= _PASSED:
                self.passed.clear()
            self.passed[key] = result
        return result

    @property
    def uses(self) -> tuple[int, ...]:
        """The slots that it is passed, and behind them those that its kernel holds. ``Packing.inputs`` counts these."""
        return *self.reads, *self.holds


_PASSED: Final = 256
"""The most passed checks that a dynamic step remembers, so that a stream of different inputs cannot exhaust memory."""


@dataclass(frozen=True, slots=True)
class Planning:
    """How to plan a model. Neither one tensor nor all constants together may exceed ``max_memory`` bytes.

    ``specialise`` chooses a kernel for each layer; without it, every operation uses its ``run``. ``fuse``
    folds constant sub-graphs, drops unused steps, switches layouts and fuses steps; hooks can then not observe single
    layers. ``compiled`` allows kernels that numba compiles. Matrices of the file in f16 or integers may take up to
    ``max_weights_memory`` bytes where kernels hold them as f32; others are unpacked in parts in each call.
    ``rounds`` are the precisions to which operands of products may be rounded: see ``Op.rounded``.
    """

    max_memory: int
    max_weights_memory: int
    specialise: bool = True
    fuse: bool = True
    compiled: bool = False
    rounds: frozenset[Operands] = frozenset()


@dataclass(frozen=True)
class Plan:
    """A planned model, with ``slots`` slots in all.

    ``parameters`` and ``results`` are slots in file order. ``constants`` are arrays by slot, present before a run.
    ``prepacked`` are the slots of the constants that kernels hold in another form; their arrays have no contents.
    ``values`` holds the Value of each layer output, as inferred before a run.
    """

    model: Model
    how: Planning
    steps: tuple[Step, ...]
    slots: int
    constants: Mapping[int, np.ndarray]
    prepacked: frozenset[int]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    values: Values
    types: tuple[ElementType, ...]
    """The element type of each slot."""
    stored: Mapping[int, int]
    """The bytes in the .bin of each matrix that is left as the file has it, by slot. It is among ``prepacked``."""

    @cached_property
    def passed(self) -> Mapping[int, np.ndarray]:
        """The constants that a run has to pass to steps or to return, by slot: all but those that kernels hold."""
        read = {*self.results, *(slot for step in self.steps for slot in step.reads)}
        return {slot: array for slot, array in self.constants.items() if slot in read}

    @cached_property
    def heavy(self) -> bool:
        """Whether the plan may have matrix products that are large enough for BLAS to use several threads."""
        large = any(array.size >= _LARGE for array in self.constants.values())
        return large or any(step.kernel.flops >= _MANY or step.dynamic or step.bodies for step in self.steps)


_LARGE: Final = 1 << 16
"""Elements of a constant from which on BLAS may use several threads for a product with it."""
_MANY: Final = 1 << 20
"""Multiplications and additions of a step from which on BLAS may use several threads."""
