"""PriorBoxClustered: boxes of given sides around each cell of a grid.  Spec: detection/prior-box-clustered-1."""

import numpy as np


from irrun.opdef import Site, Value, attr, op
from irrun.ops._prior_boxes import PriorBoxes, centres, covering


@op("PriorBoxClustered", since=1, spec="detection/prior-box-clustered-1")
class PriorBoxClustered(PriorBoxes):
    """Boxes of each ``width`` and ``height`` around each cell of a grid over an image.

    C1  ``output_size`` and ``image_size`` are 1D and hold height and width, which are not negative.
    C2  ``variance`` has 0, 1 or 4 entries.
    C3  ``width`` and ``height`` have equally many entries.
    """

    width = attr.floats((1.0,))
    height = attr.floats((1.0,))
    clip = attr.bool(True)
    step_w = attr.float(0.0)
    step_h = attr.float(0.0)

    def infer(self, at: Site, output_size: Value, image_size: Value) -> Value:
        widths, heights = len(self.width), len(self.height)
        at.require(widths == heights, "C3", f"width has {widths} entries, height {heights}")
        return self.table(at, output_size, image_size, widths)

    def run(self, output_size: np.ndarray, image_size: np.ndarray) -> np.ndarray:
        step = self.step_w or self.step, self.step_h or self.step
        places = centres(output_size, self.offset, step if any(step) else covering(output_size, image_size))
        priors = [(0, 0, *sides) for sides in zip(self.width, self.height)]
        return self.filled(places, priors, image_size)

    def clipped(self, boxes: np.ndarray) -> np.ndarray:
        return np.clip(boxes, 0, 1) if self.clip else boxes
