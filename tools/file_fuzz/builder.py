"""The tensors of a random graph while it is built, with a bound of each tensor's values and of its rounding error."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from irrun import build as b
from irrun.types import ELEMENT_TYPES

__all__ = ["EPSILON", "FLOATS", "INTEGERS", "Builder", "Dims", "Tensor", "count", "joined", "number"]

Dims = tuple[int | str, ...]
"""The dims of a tensor. A text is an open dim: two open dims with equal texts are equal in every run."""

FLOATS: Final = ("f32", "f16", "bf16", "f64")
INTEGERS: Final = ("i64", "i32", "u8")
EPSILON: Final = {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
"""The relative error of rounding to each element type."""
_MOST: Final = 32.0
"""The bound of values above which a tensor is scaled down before other layers read it."""


@dataclass(frozen=True)
class Tensor:
    """An output of a layer in a random graph."""

    output: Any
    dims: Dims
    type: str
    bound: float = 9.0
    """The greatest absolute value that an element may have."""
    error: float = 0.0
    """The greatest difference between two ways to compute an element. At 0, both give the same bits."""

    @property
    def rank(self) -> int:
        return len(self.dims)


def joined(*parts: int | str) -> int | str:
    """Return the sum of dims."""
    numbers = [part for part in parts if isinstance(part, int)]
    return sum(numbers) if len(numbers) == len(parts) else "(" + "+".join(map(str, parts)) + ")"


def count(dims: Dims) -> int | str:
    """Return the product of dims."""
    if all(isinstance(dim, int) for dim in dims):
        return math.prod(dim for dim in dims if isinstance(dim, int))
    return "(" + "*".join(map(str, dims)) + ")"


def number(value: float, type: str) -> Any:
    """Return a scalar constant."""
    return b.constant(np.array(value), type)


@dataclass
class Builder:
    """Builds one random graph. ``sizes`` are the dims of each call, by the name of an open dim."""

    rng: random.Random
    numbers: np.random.Generator
    sizes: list[dict[str, int]] = field(default_factory=lambda: [{}, {}])
    tensors: list[Tensor] = field(default_factory=list)
    parameters: list[tuple[Any, Dims, str]] = field(default_factory=list)
    sinks: list[Any] = field(default_factory=list)

    # -- tensors

    def parameter(self, dims: Dims, type: str = "f32", *, rank: bool = True) -> Tensor:
        """Add an input. Without ``rank``, it declares no rank."""
        shape = [-1 if isinstance(dim, str) else dim for dim in dims] if rank else "..."
        node = b.parameter(shape, type, name=f"in{len(self.parameters)}")
        self.parameters.append((node, dims, type))
        tensor = Tensor(node, dims, type, 2.0 if type in FLOATS else 9.0)
        self.tensors.append(tensor)
        return tensor

    def constant(self, dims: Sequence[int], type: str, scale: float = 1.0) -> Tensor:
        """Return a constant; one of f32 may be stored as f16, with a Convert after it."""
        array = self.array(dims, type, scale)
        bound = float(np.abs(array.astype(np.float64)).max(initial=0)) if type != "string" else 0.0
        if type == "f32" and self.rng.random() < 0.25:
            node = b.Convert(b.constant(array.astype(np.float16)), destination_type="f32")
        else:
            node = b.constant(array, type)
        return Tensor(node, tuple(dims), type, bound * 1.001)

    def array(self, dims: Sequence[int], type: str, scale: float = 1.0) -> np.ndarray:
        """Return random elements: floats in [-scale, scale), integers from 0 to 9."""
        if type == "boolean":
            return np.asarray(self.numbers.random(dims) < 0.5)
        if type == "string":
            words = np.array(["", "a", "hello", "größer", "x" * 20], np.str_)
            return np.asarray(words[self.numbers.integers(0, len(words), dims)])
        if type in INTEGERS:
            return np.asarray(self.numbers.integers(0, 10, dims)).astype(ELEMENT_TYPES[type].dtype)
        return np.asarray(self.numbers.uniform(-scale, scale, dims)).astype(ELEMENT_TYPES[type].dtype)

    def ints(self, *numbers: int) -> Any:
        return b.constant(np.array(numbers, np.int64))

    def pick(self, fits: Callable[[Tensor], bool]) -> Tensor | None:
        """Return a tensor that fits, most often a late one; None if there is none."""
        fitting = [tensor for tensor in self.tensors if fits(tensor)]
        if not fitting:
            return None
        return fitting[-1] if self.rng.random() < 0.5 else self.rng.choice(fitting)

    def add(self, output: Any, dims: Dims, type: str, bound: float, error: float, *, rounds: float = 1.0) -> Tensor:
        """Add an output. ``error`` is what the layer makes of the errors of its inputs.

        ``rounds`` is the number of roundings, in units of the bound, that the layer adds: none for moved data.
        """
        if type in FLOATS:
            error += rounds * 2 * bound * EPSILON[type]
        tensor = Tensor(output, dims, type, bound, error)
        if bound > _MOST and type in FLOATS:
            factor = 1 / bound
            output = b.Multiply(output, b.constant(np.array(factor), type))
            tensor = Tensor(output, dims, type, 1.0, error * factor + 2 * EPSILON[type])
        self.tensors.append(tensor)
        return tensor

    def moved(self, tensor: Tensor, output: Any, dims: Dims) -> Tensor:
        """Add an output with the elements of ``tensor`` in another order or number."""
        moved = replace(tensor, output=output, dims=dims)
        self.tensors.append(moved)
        return moved
