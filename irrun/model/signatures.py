"""The inputs and outputs of a model, and how they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irrun.base.text import table
from irrun.types import Dim, ElementType, PartialShape

__all__ = ["Tensor", "signature", "signature_lines", "signature_table"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a model. ``names`` are all its names, and ``name`` is the first of them.

    The type and the shape are None if they are unknown.
    """

    name: str
    names: tuple[str, ...]
    type: ElementType | None
    shape: PartialShape | None

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims; none for a scalar and for an unknown rank."""
        return (self.shape.dims if self.shape is not None else None) or ()

    def __str__(self) -> str:
        return f"{self.name}: {self.type or '?'}{'[...]' if self.shape is None else self.shape}"


def signature(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """Return the inputs and outputs of a model in one line."""
    return " -> ".join(", ".join(map(str, tensors)) or "nothing" for tensors in (inputs, outputs))


def signature_lines(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[str]:
    """Return the inputs and outputs of a model, each in a line."""
    return [f"  {side:<7} {tensor}" for side, tensor in _sides(inputs, outputs)]


def signature_table(title: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str:
    """Return the inputs and outputs of a model as a table in HTML."""
    rows = [(side, t.name, t.type or "?", t.shape or "?") for side, t in _sides(inputs, outputs)]
    return table(title, ("", "name", "type", "shape"), rows)


def _sides(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[tuple[str, Tensor]]:
    return [*(("input", tensor) for tensor in inputs), *(("output", tensor) for tensor in outputs)]
