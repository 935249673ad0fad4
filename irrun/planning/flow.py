"""What the passes of the planner share: steps with their definitions and uses, and what is known of the slots."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from irrun.opdef import Value
from irrun.planning.steps import Step

__all__ = ["Context", "Flow", "Inputs", "drop_unused", "is_static"]

Inputs = Sequence[Value | None]
"""What is known of the inputs of a step, in port order; None for an absent one."""


@dataclass(frozen=True)
class Flow:
    """Steps in the order of a run, with their definitions and uses. A step is named by its position.

    ``results`` are the slots of the model's outputs.
    """

    steps: tuple[Step, ...]
    results: tuple[int, ...]

    @property
    def end(self) -> int:
        """The position after the last step. It reads the model's outputs."""
        return len(self.steps)

    @cached_property
    def made(self) -> Mapping[int, int]:
        """The position of the step that fills each slot. Constants and inputs of the model are missing."""
        return {slot: position for position, step in enumerate(self.steps) for slot in step.writes}

    @cached_property
    def readers(self) -> Mapping[int, Sequence[int]]:
        """The positions that read each slot, in order: a position for each input, and ``end`` for a model output.

        A slot that nothing reads is missing.
        """
        readers: dict[int, list[int]] = {}
        for position, step in enumerate(self.steps):
            for slot in step.reads:
                if slot >= 0:
                    readers.setdefault(slot, []).append(position)
        for slot in self.results:
            readers.setdefault(slot, []).append(self.end)
        return readers

    def maker(self, slot: int, *types: str) -> Step | None:
        """Return the step that fills a slot, or None if no step fills it, or one of another type than ``types``."""
        position = self.made.get(slot)
        if position is None or (types and self.steps[position].op.type not in types):
            return None
        return self.steps[position]

    def only_reader(self, slot: int) -> int | None:
        """Return the position of the step that alone reads a slot, as one of its inputs. None if there is no such step.

        A model output has no only reader.
        """
        readers = self.readers.get(slot, ())
        return readers[0] if len(readers) == 1 and readers[0] < self.end else None

    def replaced(self, steps: Sequence[Step]) -> Flow:
        """Return the flow of other steps with the same results."""
        return Flow(tuple(steps), self.results)


@dataclass(frozen=True, slots=True)
class Context:
    """What the passes know besides the steps. They may add slots."""

    values: list[Value]
    """The Value of each slot."""
    constants: dict[int, np.ndarray]
    """The arrays of the constant slots."""
    compiled: bool
    """Whether kernels of ``irrun.fast`` are allowed."""
    release_if_large: Callable[[Inputs], None]
    """Releases the memory-mapped .bin now and then. Call it with the inputs of each layer that gets another kernel."""

    def add(self, value: Value, array: np.ndarray | None = None) -> int:
        """Add a slot and return its number. ``array`` is its contents if it is constant."""
        self.values.append(value)
        slot = len(self.values) - 1
        if array is not None:
            self.constants[slot] = array
        return slot


def is_static(step: Step, values: Sequence[Value]) -> bool:
    """Return whether a step has one output, static shapes and no keyword arguments."""
    slots = (*(slot for slot in step.reads if slot >= 0), *step.writes)
    return len(step.writes) == 1 and not step.needed and all(values[slot].shape.is_static for slot in slots)


def drop_unused(flow: Flow, context: Context) -> Flow:
    """Drop the steps on which no result and no state depends. Steps whose operation is not pure stay."""
    read = set(flow.results)
    kept: list[Step] = []
    for step in reversed(flow.steps):
        if not step.op.pure or step.needed or not read.isdisjoint(step.writes):
            read.update(step.reads)
            kept.append(step)
    return flow.replaced(kept[::-1])
