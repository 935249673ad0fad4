"""Recurrent layers in bf16 and f16: engines keep cell states and gates in f32, and round what their products read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np

from irrun.debug.low_precision.formats import FORMATS, Format
from irrun.debug.low_precision.simulation import Arrays, Run
from irrun.opdef import Op

__all__ = ["rounded_runs"]

_DATA: Final = ("X", "initial_hidden_state")
_WEIGHTS: Final = ("W", "R")
_MAYBE: Final = ("initial_cell_state", "A")
"""Inputs that engines read in f32. A layer in front of them may have rounded them, although the engine does not show
it: OpenVINO splits the states of a bidirectional layer."""


def rounded_runs(op: Op, inputs: Arrays, format: Format) -> Iterator[tuple[Arrays, Run]]:
    """Yield, for each way to round inputs, rounded inputs and a run that rounds hidden states between elements. Biases
    are not rounded.

    The operation ``rounds_inside``.
    """

    def run(*arrays: np.ndarray | None) -> tuple[np.ndarray, ...]:
        return op.run_rounding(format.round, *arrays)

    names = [port.name for port in op.inputs]
    of_weights = (_odd_up, format.round) if format is FORMATS["bf16"] else (format.round,)
    for data, weights in product((_DATA, (*_DATA, *_MAYBE)), of_weights):
        roundings = {**dict.fromkeys(data, format.round), **dict.fromkeys(_WEIGHTS, weights)}
        yield [a if a is None or n not in roundings else roundings[n](a) for n, a in zip(names, inputs)], run


def _odd_up(array: np.ndarray) -> np.ndarray:
    """Return weights in bf16 as ``ov::bfloat16`` of OpenVINO rounds a float.

    Its last bit decides: an odd number is rounded to the nearest, half away from 0, and an even one towards 0.
    """
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    half = (bits & np.uint32(0x10000)) >> np.uint32(1)
    return ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32).reshape(array.shape).astype(array.dtype)
