"""Prior boxes: those that a detector starts from, around the centre of each cell of a grid."""

from collections.abc import Sequence

import numpy as np

from irrun.opdef import Op, Site, Value, attr, ports
from irrun.types import ELEMENT_TYPES, Dim, PartialShape


class PriorBoxes(Op):
    """The boxes, in parts of the image's width and height, above the variance of each coordinate.

    Its clauses have the same labels everywhere:

    C1  ``output_size`` and ``image_size`` are 1D and hold height and width, which are not negative.
    C2  ``variance`` has 0, 1 or 4 entries.
    """

    offset = attr.float()
    step = attr.float(0.0)
    variance = attr.floats(())
    inputs = ports(output_size="int", image_size="int")

    def table(self, at: Site, output_size: Value, image_size: Value, priors: int) -> Value:
        """The output, with so many boxes in each cell."""
        for name, value in ("output_size", output_size), ("image_size", image_size):
            is_size = value.rank in (None, 1) and value.shape.count().fits(2)
            at.require(is_size, "C1", f"{name} is {value.shape}, not [2]")
            numbers = value.dims() or ()
            at.require(all(n.hi >= 0 for n in numbers), "C1", f"{name} is {', '.join(map(str, numbers))}")
        at.require(len(self.variance) in (0, 1, 4), "C2", f"variance has {len(self.variance)} entries")
        size = output_size.as_shape()
        return Value(ELEMENT_TYPES["f32"], PartialShape((Dim(2), size[0] * size[1] * (4 * priors))))

    def filled(self, centres: np.ndarray, priors: Sequence[Sequence[float]], image_size: np.ndarray) -> np.ndarray:
        """Boxes around ``centres`` [height, width, 2]; a prior is how far off a centre it is, and its sides."""
        of_cell = np.array(priors, np.float32).reshape(-1, 4)
        middles, halves = centres[:, :, None] + of_cell[:, :2], of_cell[:, 2:] / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            boxes = np.concatenate([middles - halves, middles + halves], -1) / np.tile(image_size[::-1], 2)
        boxes = self.clipped(boxes.astype(np.float32))
        variances = np.array(self.variance or [0.1], np.float32)
        return np.stack([boxes.ravel(), np.broadcast_to(variances, boxes.shape).ravel()])

    def clipped(self, boxes: np.ndarray) -> np.ndarray:
        """The boxes within the image, where that is asked for."""
        raise NotImplementedError


def centres(output_size: np.ndarray, offset: float, step: Sequence[float] | np.ndarray) -> np.ndarray:
    """The centre [x, y] of each cell [height, width], for cells of size ``step``."""
    height, width = output_size.tolist()
    cells = np.stack(np.meshgrid(np.arange(width), np.arange(height)), -1)
    return ((cells + offset) * step).astype(np.float32)


def covering(output_size: np.ndarray, image_size: np.ndarray) -> np.ndarray:
    """The size [width, height] of cells that cover the image."""
    return image_size[::-1] / np.maximum(output_size[::-1], 1)
