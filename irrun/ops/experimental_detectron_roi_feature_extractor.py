"""ExperimentalDetectronROIFeatureExtractor: ROIAlign on the level of a pyramid that suits each region.

Spec: detection/experimental-detectron-roi-feature-extractor-6.
"""

import numpy as np

from irrun.kernels.cast import plain
from irrun.opdef import Op, Site, Value, attr, op, ports, variadic
from irrun.ops._boxes import common_dim
from irrun.ops._roi_align import RoiAlignBase


class _Level(RoiAlignBase):
    """ROIAlign on one level of the pyramid, where every region is at least one pixel wide and high."""

    columns = 4
    offset: float

    def box(self, roi: np.ndarray) -> tuple[np.floating, np.floating, np.floating, np.floating]:
        x1, y1, x2, y2 = roi * roi.dtype.type(self.spatial_scale) - roi.dtype.type(self.offset)
        one = roi.dtype.type(1)
        return x1, y1, max(x2 - x1, one), max(y2 - y1, one)


@op(
    "ExperimentalDetectronROIFeatureExtractor",
    since=6,
    spec="detection/experimental-detectron-roi-feature-extractor-6",
)
class ExperimentalDetectronROIFeatureExtractor(Op):
    """Return the features of each region, from the level of the pyramid that suits its size, and the regions.

    C1  ``rois`` is [n, 4], each level of the ``pyramid`` is [1, channels, height, width].
    C2  All levels have the same number of channels.
    C3  ``pyramid_scales`` has a positive entry for each level.
    C4  ``output_size`` is positive, ``sampling_ratio`` not negative.
    """

    output_size = attr.int()
    sampling_ratio = attr.int()
    pyramid_scales = attr.ints()
    aligned = attr.bool(False)
    inputs = ports(rois="T", pyramid=variadic("T"))
    types = {"T": "float"}
    outputs = 2

    def infer(self, at: Site, rois: Value, *pyramid: Value) -> tuple[Value, Value]:
        at.require(rois.rank in (None, 2) and rois.shape[1].fits(4), "C1", f"rois is {rois.shape}, not [n, 4]")
        for level, value in enumerate(pyramid):
            is_map = value.rank in (None, 4) and value.shape[0].fits(1)
            at.require(is_map, "C1", f"level {level} is {value.shape}, not [1, channels, height, width]")
        channels = common_dim(*(value.shape[1] for value in pyramid))
        at.require(
            channels is not None,
            "C2",
            f"the levels {', '.join(str(value.shape) for value in pyramid)} differ in channels",
        )
        assert channels is not None
        scales = self.pyramid_scales[: len(pyramid)]
        enough = len(scales) == len(pyramid) and all(scale > 0 for scale in scales)
        message = f"pyramid_scales {list(self.pyramid_scales)} has no positive entry for each of {len(pyramid)} levels"
        at.require(enough, "C3", message)
        size, ratio = self.output_size, self.sampling_ratio
        at.require(size > 0, "C4", f"output_size is {size}, not positive")
        at.require(ratio >= 0, "C4", f"sampling_ratio {ratio} is negative")
        return rois.reshaped([rois.shape[0], channels, size, size]), rois.reshaped([rois.shape[0], 4])

    def run(self, rois: np.ndarray, *pyramid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        result = np.zeros((len(rois), pyramid[0].shape[1], self.output_size, self.output_size), rois.dtype)
        numbers = _levels(plain(rois), len(pyramid))
        levels = [self._level(scale) for scale in self.pyramid_scales[: len(pyramid)]]
        for number, level in enumerate(levels):
            level.refuse_many_samples(plain(rois[numbers == number]))
        for number, (features, level) in enumerate(zip(pyramid, levels)):
            places = np.flatnonzero(numbers == number)
            result[places] = level.run(features, rois[places], np.zeros(len(places), np.int64))
        return result, rois  # OpenVINO keeps the order of the regions; the specification orders them by level

    def _level(self, scale: int) -> _Level:
        """Return the operation that computes the regions of a level. ``scale`` is the stride of its features."""
        size = self.output_size
        level = _Level(pooled_h=size, pooled_w=size, sampling_ratio=self.sampling_ratio, spatial_scale=1 / scale)
        level.offset = 0.5 if self.aligned else 0
        return level


def _levels(rois: np.ndarray, count: int) -> np.ndarray:
    """Return the level of each region: 2 for 224 x 224 pixels, one more for each doubling of the side, -1 if empty."""
    areas = (rois[:, 2] - rois[:, 0]) * (rois[:, 3] - rois[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        levels = np.floor(2 + np.log2(np.sqrt(areas) / 224 + 1e-6))
    return np.where(areas > 0, np.clip(levels, 0, count - 1), -1)  # OpenVINO gives an empty region features of 0
