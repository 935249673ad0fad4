"""The converters of operations, a module for each family. Importing this package registers them."""

from irrun.export.operations import (
    control_flow,
    detection,
    elementwise,
    gather,
    matrix,
    movement,
    normalization,
    quantization,
    recurrent,
    reductions,
    resize,
    signal,
    state,
    windows,
)

__all__ = [
    "control_flow", "detection", "elementwise", "gather", "matrix", "movement", "normalization", "quantization",
    "recurrent", "reductions", "resize", "signal", "state", "windows",
]  # fmt: skip
