"""A convolution or pooling that one step computes together with others: see ``bands`` and ``sequences``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Change

__all__ = ["NOT_SPLIT", "Stage"]

NOT_SPLIT: Final = np.empty((0, 0, 0), np.uint32)
"""The panels of filters that are not split."""


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A convolution with its epilogue, see ``windows.convolve``, or a pooling, see ``pooling.largest``."""

    axes: tuple[Axis, ...]
    """The windows along rows and columns of the data, or of its copy with pads."""
    panels: np.ndarray
    """The filters; empty for a pooling."""
    groups: int
    depth: int
    """The elements that a window of a group sees at each tap; 0 if each channel has a filter of its own."""
    pixel: int
    """The elements of a pixel of the data, or its words if the data is rounded."""
    channels: int
    """The number of output channels."""
    bias: np.ndarray
    limits: np.ndarray
    adds: int
    """How a residual is added, which is then an input of the kernel after data and filters: see ``window_block``."""
    rounded: int = 0
    """Channels of a section of a pixel if the data is rounded to bf16 first, else 0; ``depth`` counts words then."""
    sections: int = 1
    """The parts of a pixel that are rounded apart from each other, so that each begins with a word."""
    parts: tuple[int, ...] = ()
    """The channels of each input that holds some channels of the data, if it is in parts. They are rounded."""
    padded: tuple[Axis, ...] = ()
    """The windows along rows and columns of the data, if it is copied with pads first. Such data is not rounded."""
    image: tuple[int, int] = (0, 0)
    """The rows and columns of the output, if the windows are one phase of it; the windows are all of it otherwise."""
    steps: tuple[int, int] = (1, 1)
    firsts: tuple[int, int] = (0, 0)
    """See ``windows.geometry_of``."""
    others: tuple[Stage, ...] = ()
    """The other phases of a transposed convolution."""
    split: np.ndarray = field(default_factory=lambda: NOT_SPLIT)
    """The filters for data that is split: see ``window_tiles.multiply_split``."""
    change: Change | None = None
    """Changes the results of all phases: see ``Epilogue``."""

    @property
    def pools(self) -> bool:
        """Whether this is a pooling: the largest element of each window and channel."""
        return not self.panels.size

    @property
    def shape(self) -> tuple[int, int, int]:
        """The rows, columns and channels of the output."""
        rows, columns = self.image if any(self.image) else (axis.out for axis in self.axes)
        return rows, columns, self.channels

    @property
    def row(self) -> int:
        """The bytes of a row of the output."""
        return 4 * self.shape[1] * self.channels
