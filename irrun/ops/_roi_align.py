"""Shared by ROIAlign and ROIAlignRotated: regions that are divided into bins, and bins into samples."""

from typing import ClassVar

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, ports
from irrun.ops._rois import MOST_SAMPLES, batch_fault, bilinear, blocks, check_batches, refuse_samples


class RoiAlignBase(Op):
    """Base of both operations. ``columns`` is the number of columns of ``rois``.

    C1  ``data`` is 4D, ``rois`` is 2D with ``columns`` columns, ``batch_indices`` is 1D.
    C2  ``batch_indices`` has one entry for each region.
    C3  ``pooled_h``, ``pooled_w`` and ``spatial_scale`` are positive, ``sampling_ratio`` is not negative.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    """

    pooled_h = attr.int()
    pooled_w = attr.int()
    sampling_ratio = attr.int()
    spatial_scale = attr.float()
    mode: str = "avg"
    inputs = ports(data="T", rois="T", batch_indices="T_IND")
    types = {"T": "float", "T_IND": "int"}
    columns: ClassVar[int]

    def infer(self, at: Site, data: Value, rois: Value, batch_indices: Value) -> Value:
        at.require(data.rank in (None, 4), "C1", f"data is {data.shape}, not 4D")
        at.require(rois.rank in (None, 2), "C1", f"rois is {rois.shape}, not 2D")
        at.require(
            rois.shape[1].fits(self.columns), "C1", f"rois {rois.shape} has {rois.shape[1]} columns, not {self.columns}"
        )
        at.require(batch_indices.rank in (None, 1), "C1", f"batch_indices is {batch_indices.shape}, not 1D")
        count = rois.shape[0].meet(batch_indices.shape[0])
        at.require(
            count is not None, "C2", f"rois {rois.shape} and batch_indices {batch_indices.shape} have different lengths"
        )
        assert count is not None
        for name in ("pooled_h", "pooled_w", "spatial_scale"):
            at.require(getattr(self, name) > 0, "C3", f"{name} is {getattr(self, name):g}, not positive")
        at.require(self.sampling_ratio >= 0, "C3", f"sampling_ratio {self.sampling_ratio} is negative")
        indices, batches = batch_indices.exact, data.shape[0].value
        if indices is not None and batches is not None:
            fault = batch_fault(indices, batches)
            at.require(fault is None, "C4", fault or "")
        return data.reshaped([count, data.shape[1], self.pooled_h, self.pooled_w])

    def box(self, roi: np.ndarray) -> tuple[np.floating, np.floating, np.floating, np.floating]:
        """Return where a region begins (x, y) and its size (width, height), on the feature map."""
        raise NotImplementedError

    def placed(self, roi: np.ndarray, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the places (y, x) of a region's samples on the feature map."""
        return y, x

    def run(self, data: np.ndarray, rois: np.ndarray, batch_indices: np.ndarray) -> np.ndarray:
        work = wide(data.dtype)
        check_batches(batch_indices, len(data), "C4")
        rois = rois.astype(work)
        self.refuse_many_samples(rois)
        out = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), work)
        for n, (roi, batch) in enumerate(zip(rois, batch_indices.tolist())):
            out[n] = self._pool(data[batch].astype(work, copy=False), roi)
        return narrow(out, data.dtype)

    def _pool(self, maps: np.ndarray, roi: np.ndarray) -> np.ndarray:
        """Return the bins (channels, pooled_h, pooled_w) of one region of ``maps`` (channels, height, width)."""
        height, width = maps.shape[1:]
        x1, y1, wide, high = self.box(roi)
        rows, columns = self._counts(roi)
        pooled = np.zeros((len(maps), self.pooled_h, self.pooled_w), maps.dtype)
        for channel, bin_y, bin_x, sample_y, sample_x in blocks(*pooled.shape, rows, columns):
            # (bin row, bin column, sample row, sample column)
            y = _samples(y1, high / y1.dtype.type(self.pooled_h), rows, bin_y, sample_y)[:, np.newaxis, :, np.newaxis]
            x = _samples(x1, wide / x1.dtype.type(self.pooled_w), columns, bin_x, sample_x)[:, np.newaxis, :]
            y, x = self.placed(roi, y, x)
            inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
            near_y = np.clip(np.where(inside, y, 0), 0, height - 1)
            near_x = np.clip(np.where(inside, x, 0), 0, width - 1)
            samples = np.where(inside, bilinear(maps, channel, near_y, near_x), 0)
            part = pooled[channel, bin_y, bin_x]
            if self.mode == "max":
                np.maximum(part, samples.max((3, 4)), out=part)  # OpenVINO gives 0 where all samples are negative
            else:
                part += samples.sum((3, 4))
        # OpenVINO's CPU plugin gives NaN for a bin without samples, the reference kernel 0
        return pooled if self.mode == "max" else pooled / maps.dtype.type(max(1, rows * columns))

    def refuse_many_samples(self, rois: np.ndarray) -> None:
        """Raise Refused (IR604) if a bin of one of the regions has too many samples."""
        for roi in rois:
            refuse_samples(*self._counts(roi), "sampling_ratio" if self.sampling_ratio else "spatial_scale")

    def _counts(self, roi: np.ndarray) -> tuple[int, int]:
        """Return the rows and the columns of samples in a bin of a region."""
        _, _, wide, high = self.box(roi)
        return self._count(high, self.pooled_h), self._count(wide, self.pooled_w)

    def _count(self, size: np.floating, bins: int) -> int:
        """Return the number of samples of a bin along one axis: none if its size is NaN, too many if infinite."""
        most = np.float64(MOST_SAMPLES + 1)
        return self.sampling_ratio or int(np.nan_to_num(np.clip(np.ceil(size / size.dtype.type(bins)), 0, most)))


def _samples(start: np.floating, step: np.floating, count: int, bins: slice, samples: slice) -> np.ndarray:
    """Return some samples of some bins along one axis, as [bins, samples]: each in the middle of its part of the bin.

    The first bin begins at ``start``, each bin has the size ``step`` and ``count`` samples.
    """
    type = start.dtype.type
    first = start + np.arange(bins.start, bins.stop).astype(type) * step
    return first[:, np.newaxis] + (np.arange(samples.start, samples.stop).astype(type) + type(0.5)) * (step / count)
