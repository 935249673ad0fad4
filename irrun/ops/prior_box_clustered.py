"""PriorBoxClustered: boxes of given sizes around the points of a grid.  Spec: detection/prior-box-clustered-1."""

import numpy as np

from irrun.opdef import Site, Value, attr, op
from irrun.ops._priors import Priors, around


@op("PriorBoxClustered", since=1, spec="detection/prior-box-clustered-1")
class PriorBoxClustered(Priors):
    """Return boxes [xmin, ymin, xmax, ymax], relative to the image, in row 0, and their variances in row 1.

    C1  ``output_size`` and ``image_size`` are 1D and have two elements each.
    C2  ``variance`` has 0, 1 or 4 elements.
    C3  ``width`` and ``height`` have the same number of entries.
    C4  The entries of ``width`` and ``height`` are positive.
    """

    width = attr.floats((1.0,))
    height = attr.floats((1.0,))
    clip = attr.bool(True)
    step = attr.float(0.0)
    step_w = attr.float(0.0)
    step_h = attr.float(0.0)
    offset = attr.float()
    variance = attr.floats(())

    def infer(self, at: Site, output_size: Value, image_size: Value) -> Value:
        at.require(
            len(self.width) == len(self.height),
            "C3",
            f"width has length {len(self.width)}, but height has {len(self.height)}",
        )
        for name in ("width", "height"):
            sizes = list(getattr(self, name))
            at.require(all(size > 0 for size in sizes), "C4", f"{name} {sizes} has an entry that is not positive")
        return self.priors(at, output_size, image_size, len(self.width))

    def run(self, output_size: np.ndarray, image_size: np.ndarray) -> np.ndarray:
        height, width = (int(n) for n in output_size.tolist())
        image_height, image_width = (int(n) for n in image_size.tolist())
        steps = self.step_w or self.step, self.step_h or self.step
        if steps == (0, 0):
            steps = image_width / max(width, 1), image_height / max(height, 1)
        halves = np.array([self.width, self.height]).T / 2
        boxes = around(height, width, self.offset, steps, np.zeros_like(halves), halves)
        boxes /= np.array([image_width, image_height] * 2, np.float32)
        return self.output(boxes.clip(0, 1) if self.clip else boxes)
