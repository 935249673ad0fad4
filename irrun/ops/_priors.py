"""Shared by PriorBox and PriorBoxClustered: boxes around the points of a grid over an image."""

import numpy as np

from irrun.opdef import Op, Site, Value, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape


class Priors(Op):
    """Base of the operations that return boxes [xmin, ymin, xmax, ymax] relative to the image, and their variances.

    C1  ``output_size`` and ``image_size`` are 1D and have two elements each.
    C2  ``variance`` has 0, 1 or 4 elements.
    """

    variance: tuple[float, ...]
    inputs = ports(output_size="int", image_size="int")

    def priors(self, at: Site, output_size: Value, image_size: Value, count: int) -> Value:
        """Return the output for ``count`` boxes around each point. Refuses by C1 and C2."""
        for name, value in (("output_size", output_size), ("image_size", image_size)):
            two = value.rank in (None, 1) and value.shape.count().fits(2)
            at.require(two, "C1", f"{name} is {value.shape}, not 1D of two elements")
        at.require(len(self.variance) in (0, 1, 4), "C2", f"variance has {len(self.variance)} elements, not 0, 1 or 4")
        height, width = output_size.dims() or (Dim.unknown(), Dim.unknown())
        # OpenVINO gives an output of f32 in every case
        return Value(ELEMENT_TYPES["f32"], PartialShape.of([2, height.max(0) * width.max(0) * (4 * count)]))

    def output(self, boxes: np.ndarray) -> np.ndarray:
        """Return an array of two rows: the boxes, and their variances."""
        # OpenVINO writes variances of 0.1 if the attribute is empty
        variances = np.broadcast_to(np.array(self.variance or (0.1,), np.float32), (boxes.size // 4, 4))
        return np.stack([boxes.ravel(), variances.ravel()]).astype(np.float32)


def around(
    height: int, width: int, offset: float, steps: tuple[float, float], centers: np.ndarray, halves: np.ndarray
) -> np.ndarray:
    """Return boxes [height, width, n, 4] in pixels: n boxes around each point of a grid.

    ``centers`` and ``halves`` (half sizes) are [n, 2] (x, y). The points are ``steps`` (x, y) apart, and the first is
    ``offset`` steps from the corner.
    """
    if height <= 0 or width <= 0:  # the other one may be any number
        return np.empty((0, 0, len(halves), 4), np.float32)
    x, y = (np.arange(n, dtype=np.float32) for n in (width, height))
    points = np.empty((height, width, 1, 2), np.float32)
    points[..., 0] = ((x + np.float32(offset)) * np.float32(steps[0]))[:, None]
    points[..., 1] = ((y + np.float32(offset)) * np.float32(steps[1]))[:, None, None]
    centers = points + centers.astype(np.float32)
    halves = halves.astype(np.float32)
    return np.concatenate([centers - halves, centers + halves], axis=-1)
