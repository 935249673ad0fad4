"""ROIAlign: regions of a feature map, each interpolated to one size.  Spec: detection/roi-align-{3,9}."""

import numpy as np

from irrun.opdef import attr, op
from irrun.ops._roi_align import RoiAlignBase


class _ROIAlign(RoiAlignBase):
    columns = 4
    mode = attr.choice("max", "avg")
    aligned_mode: str = "asymmetric"

    def box(self, roi: np.ndarray) -> tuple[np.floating, np.floating, np.floating, np.floating]:
        half = roi.dtype.type(0.5)
        if self.aligned_mode == "half_pixel":
            roi = roi + half
        roi = roi * roi.dtype.type(self.spatial_scale)
        if self.aligned_mode != "asymmetric":
            x1, y1, x2, y2 = roi - half
            return x1, y1, x2 - x1, y2 - y1
        x1, y1, x2, y2 = roi
        return x1, y1, max(x2 - x1, roi.dtype.type(1)), max(y2 - y1, roi.dtype.type(1))


@op("ROIAlign", since=9, spec="detection/roi-align-9")
class ROIAlign9(_ROIAlign):
    """Divide each region (x1, y1, x2, y2) into bins, and take the maximum or the mean of interpolated samples of each.

    C1  ``data`` is 4D, ``rois`` is 2D with four columns, ``batch_indices`` is 1D.
    C2  ``batch_indices`` has one entry for each region.
    C3  ``pooled_h``, ``pooled_w`` and ``spatial_scale`` are positive, ``sampling_ratio`` is not negative.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    """

    aligned_mode = attr.choice("asymmetric", "half_pixel_for_nn", "half_pixel", default="asymmetric")


@op("ROIAlign", since=3, spec="detection/roi-align-3")
class ROIAlign3(_ROIAlign):
    """Compute the same as ROIAlign-9, always with ``aligned_mode`` asymmetric.

    C1  ``data`` is 4D, ``rois`` is 2D with four columns, ``batch_indices`` is 1D.
    C2  ``batch_indices`` has one entry for each region.
    C3  ``pooled_h``, ``pooled_w`` and ``spatial_scale`` are positive, ``sampling_ratio`` is not negative.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    """
