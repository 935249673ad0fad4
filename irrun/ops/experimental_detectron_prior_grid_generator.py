"""ExperimentalDetectronPriorGridGenerator: prior boxes around each cell of a grid.

Spec: detection/experimental-detectron-prior-grid-generator-6.
"""

import numpy as np

from irrun.kernels.cast import plain
from irrun.kernels.matmul import narrow
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.types import product


@op(
    "ExperimentalDetectronPriorGridGenerator",
    since=6,
    spec="detection/experimental-detectron-prior-grid-generator-6",
)
class ExperimentalDetectronPriorGridGenerator(Op):
    """Place ``priors`` at the centre of each cell of a feature map, or of a grid of ``h`` by ``w`` cells.

    If there are fewer cells than in the feature map, zeros follow the last box.

    C1  ``priors`` is [n, 4], ``feature_map`` and ``im_data`` are 4D.
    C2  The batch size of ``feature_map`` and ``im_data`` is 1.
    C3  ``h`` and ``w`` are not negative and at most the height and width of ``feature_map``.
    C4  ``stride_x`` and ``stride_y`` are not negative.
    """

    # OpenVINO leaves the default of flatten undefined
    flatten = attr.bool(True)
    h = attr.int(0)
    w = attr.int(0)
    stride_x = attr.float(0.0)
    stride_y = attr.float(0.0)
    inputs = ports(priors="T", feature_map="T", im_data="T")
    types = {"T": "float"}

    def infer(self, at: Site, priors: Value, feature_map: Value, im_data: Value) -> Value:
        at.require(priors.rank in (None, 2) and priors.shape[1].fits(4), "C1", f"priors is {priors.shape}, not [n, 4]")
        for name, value in ("feature_map", feature_map), ("im_data", im_data):
            at.require(value.rank in (None, 4), "C1", f"{name} is {value.shape}, not 4D")
            at.require(value.shape[0].fits(1), "C2", f"the batch size of {name} {value.shape} is not 1")
        grid = [feature_map.shape[2], feature_map.shape[3]]
        fits = all(0 <= cells <= dim.hi for cells, dim in zip((self.h, self.w), grid))
        at.require(fits, "C3", f"h {self.h} or w {self.w} is negative or more than in feature_map {feature_map.shape}")
        for name in ("stride_x", "stride_y"):
            at.require(getattr(self, name) >= 0, "C4", f"{name} {getattr(self, name):g} is negative")
        dims = [*grid, priors.shape[0]]
        return priors.reshaped([product(dims), 4] if self.flatten else [*dims, 4])

    def run(self, priors: np.ndarray, feature_map: np.ndarray, im_data: np.ndarray) -> np.ndarray:
        height, width = self.h or feature_map.shape[2], self.w or feature_map.shape[3]
        stride_y = self.stride_y or im_data.shape[2] / max(height, 1)
        stride_x = self.stride_x or im_data.shape[3] / max(width, 1)
        centres = np.moveaxis(np.indices((height, width)), 0, -1) + 0.5
        centres = centres[:, :, np.newaxis, ::-1] * np.array([stride_x, stride_y])
        result = np.zeros((*feature_map.shape[2:], *priors.shape), priors.dtype)
        boxes = narrow(plain(priors) + np.tile(centres, 2), priors.dtype)
        result.reshape(-1)[: boxes.size] = boxes.ravel()
        return result.reshape(-1, 4) if self.flatten else result
