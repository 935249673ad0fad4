"""ROIAlignRotated: ROIAlign of rotated regions.  Spec: detection/roi-align-rotated-15."""

import numpy as np

from irrun.opdef import attr, op
from irrun.ops._roi_align import RoiAlignBase


@op("ROIAlignRotated", since=15, spec="detection/roi-align-rotated-15")
class ROIAlignRotated(RoiAlignBase):
    """Divide each region (centre x and y, width, height, angle) into bins, and take the mean of samples of each bin.

    C1  ``data`` is 4D, ``rois`` is 2D with five columns, ``batch_indices`` is 1D.
    C2  ``batch_indices`` has one entry for each region.
    C3  ``pooled_h``, ``pooled_w`` and ``spatial_scale`` are positive, ``sampling_ratio`` is not negative.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    """

    clockwise_mode = attr.bool(False)
    columns = 5

    def box(self, roi: np.ndarray) -> tuple[np.floating, np.floating, np.floating, np.floating]:
        width, height = roi[2:4] * roi.dtype.type(self.spatial_scale)
        return -width / 2, -height / 2, width, height

    def placed(self, roi: np.ndarray, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        centre_x, centre_y = roi[:2] * roi.dtype.type(self.spatial_scale) - roi.dtype.type(0.5)
        angle = -roi[4] if self.clockwise_mode else roi[4]
        sine, cosine = np.sin(angle), np.cos(angle)
        return y * cosine - x * sine + centre_y, y * sine + x * cosine + centre_x
