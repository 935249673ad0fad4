"""The kernel of one layer: the function that computes it, and what the planner may ask of that function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

__all__ = ["CHANNELS_LAST", "ORDER", "Finish", "Kernel"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """How one layer is computed, chosen when its model is compiled.

    ``call`` takes the input arrays in port order (None for an absent optional one) and gives an array or a tuple.
    What it may be asked for beyond that, a kernel says here; it is then a single output of known shape.
    """

    call: Callable[..., Any]
    algorithm: str = ""
    """Which of several ways of computing this is: a word or two, as the profile shows them."""
    out: bool = False
    """Whether ``call`` takes ``out=``: a C-contiguous array of the output's type and shape, or None. It fills and
    returns it; it does not overlap with an input."""
    elementwise: bool = False
    """Whether each element of the output follows from the elements at its place in the inputs, which numpy
    broadcasts. ``out`` may then be one of the inputs, and ``call`` is given corresponding parts of all of them."""
    finish: bool = False
    """Whether ``call`` takes ``finish=``, too: a function that it calls once for each part of ``out`` as soon as that
    is computed, on any thread, as ``finish(out[index], index)`` with a slice for each axis. What follows is then done
    in place."""
    flops: int = 0
    """Multiplications and additions of a call, where they are what takes its time."""
    ignores: tuple[int, ...] = ()
    """The inputs, constant ones, whose contents ``call`` does not look at: it has them in another form."""
    pack: Callable[[], object] | None = None
    """Brings constant inputs into that form, where this is not done yet: the first ``call`` would do it otherwise."""


Finish = Callable[[np.ndarray, tuple[slice, ...]], None]
"""What a kernel is asked to call with each part of its output: see ``Kernel.finish``."""


CHANNELS_LAST: Final = {0: 0, 1: 3, 2: 1, 3: 2, -4: 0, -3: 3, -2: 1, -1: 2}
"""Where each axis of a value of rank 4 stands when its channels are last: see ``Op.prepare_channels_last``."""


ORDER: Final = (0, 2, 3, 1)
"""The axes of a value of rank 4 in the order in which its channels are last."""
