"""A convolution that one step computes together with others: see ``bands`` and ``sequences``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from irrun.kernels.convolution.windows import Axis

__all__ = ["Stage"]


@dataclass(frozen=True, slots=True, eq=False)
class Stage:
    """A convolution with its epilogue: see ``windows.convolve``."""

    axes: tuple[Axis, ...]
    """The windows along rows and columns of the data, or of its copy with pads."""
    panels: np.ndarray
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

    @property
    def row(self) -> int:
        """Return the bytes of a row of the output."""
        return 4 * self.axes[1].out * self.channels
