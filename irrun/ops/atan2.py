"""Atan2: the angle of a point.  Spec: arithmetic/atan2-17."""

import numpy as np

from irrun.ops._elementwise import binary

Atan2 = binary(
    "Atan2", np.arctan2, since=17, types="float",
    doc="Compute the angle, in [-π, π], between the x axis and the point with the coordinates x = ``b`` and y = ``a``.",
    spec="arithmetic/atan2-17",
)  # fmt: skip
