"""What random models are drawn with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from irrun import build as b

__all__ = ["SPECIAL", "Draw", "Node"]

SPECIAL: Final[Mapping[str, np.ndarray]] = {
    "not finite": np.array([np.nan, np.inf, -np.inf], np.float32),
    "huge": np.array([1e30, -1e30], np.float32),
    "tiny": np.array([0.0, -0.0, 1e-40, -1e-40, 1e-45, 2e-38], np.float32),
}
"""Numbers that some calls hold among their inputs, by kind: next to huge ones, errors of the others do not show."""
Node = Any


@dataclass
class Draw:
    """What a model is drawn with, the shapes of its inputs, and its sinks."""

    rng: np.random.Generator
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    sinks: list[Node] = field(default_factory=list)
    """The layers of the model that no result reads."""

    def one(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def size(self, most: int, least: int = 1) -> int:
        """Return a size: small, about a power of two, or any."""
        kind = self.rng.integers(3)
        if kind == 0:
            found = self.rng.integers(1, 9)
        elif kind == 1:
            found = 2 ** self.rng.integers(0, most.bit_length()) + self.rng.integers(-1, 2)
        else:
            found = self.rng.integers(least, most + 1)
        return int(np.clip(found, least, most))

    def normal(self, *shape: int, scale: float = 1) -> np.ndarray:
        return self.rng.standard_normal(shape, np.float32) * np.float32(scale)

    def weights(self, *shape: int) -> np.ndarray:
        """Return constant numbers, some of which f16 holds."""
        numbers = self.normal(*shape, scale=1 / 8)
        return numbers.astype(np.float16).astype(np.float32) if self.rng.random() < 0.5 else numbers

    def input(self, *shape: int, dynamic: float = 0.4) -> Node:
        """Add an input, and return its node. The model does not know its shape in a part ``dynamic`` of the calls."""
        self.shapes.append(shape)
        declared = [None] * len(shape) if self.rng.random() < dynamic else list(shape)
        return b.parameter(declared, "f32", name=f"x{len(self.shapes)}")

    def numbers(self, special: str) -> list[np.ndarray]:
        """Return contents of the inputs for one call, with a few special numbers of a kind, if it is not empty."""
        made = [self.normal(*shape, scale=3) for shape in self.shapes]
        for array in made if special else ():
            if array.size:
                places = self.rng.integers(array.size, size=self.rng.integers(1, 4))
                array.reshape(-1)[places] = self.rng.choice(SPECIAL[special], len(places))
        return made
