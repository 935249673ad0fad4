"""ROIPooling: regions of a feature map, each pooled to one size.  Spec: detection/roi-pooling-1."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.kernels.resampling import round_half_away
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._rois import bilinear, check_batches, check_regions, edge, regions


@op("ROIPooling", since=2, spec="detection/roi-pooling-1")
class ROIPooling(Op):
    """Divide each region into bins. A bin is its largest element (method max) or ``data`` at one point (bilinear).

    With method bilinear, the coordinates are fractions of the feature map. Bins outside it are 0.

    C1  ``data`` is 4D, ``rois`` is 2D with five columns.
    C2  ``pooled_h`` and ``pooled_w`` are not negative.
    C3  ``spatial_scale`` is positive.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    C5  ``output_size`` and ``output_roi`` are left out, or hold ``pooled_h`` and ``pooled_w``.
    """

    pooled_h = attr.int()
    pooled_w = attr.int()
    spatial_scale = attr.float()
    method = attr.choice("max", "bilinear", default="max")
    # OpenVINO writes the number of bins two more times
    output_size = attr.ints(())
    output_roi = attr.ints(())
    inputs = ports(data="T", rois="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, rois: Value) -> Value:
        for name in ("pooled_h", "pooled_w"):
            at.require(getattr(self, name) >= 0, "C2", f"{name} {getattr(self, name)} is negative")
        bins = (self.pooled_h, self.pooled_w)
        for name in ("output_size", "output_roi"):
            repeated = getattr(self, name)
            at.require(repeated in ((), bins), "C5", f"{name} is {list(repeated)}, but the bins are {list(bins)}")
        at.require(self.spatial_scale > 0, "C3", f"spatial_scale is {self.spatial_scale:g}, not positive")
        count, channels = check_regions(at, data, rois, ("C1", "C4"))
        return data.reshaped([count, channels, self.pooled_h, self.pooled_w])

    def run(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        work = wide(data.dtype)
        out = np.zeros((len(rois), data.shape[1], self.pooled_h, self.pooled_w), work)
        boxes = regions(rois).astype(work)
        check_batches(boxes[:, 0], len(data), "C4")
        if not out.size:
            return narrow(out, data.dtype)
        pool = self._largest if self.method == "max" else self._between
        for n, (batch, *box) in enumerate(boxes):
            out[n] = pool(data[int(batch)].astype(work, copy=False), np.array(box))
        return narrow(out, data.dtype)

    def _largest(self, maps: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Return the bins (channels, rows, columns) of one region, each the largest element that it covers, or 0."""
        x1, y1, x2, y2 = round_half_away(box * box.dtype.type(self.spatial_scale))
        out = np.zeros((len(maps), self.pooled_h, self.pooled_w), maps.dtype)
        for row, down in enumerate(_bins(y1, y2, self.pooled_h, maps.shape[1])):
            for column, across in enumerate(_bins(x1, x2, self.pooled_w, maps.shape[2])):
                if (elements := maps[:, down, across]).size:
                    out[:, row, column] = elements.max((1, 2))
        return out

    def _between(self, maps: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Return the bins (channels, rows, columns) of one region, each at one place; bins outside ``maps`` are 0."""
        x1, y1, x2, y2 = box
        y = _places(y1, y2, self.pooled_h, maps.shape[1])[:, np.newaxis]
        x = _places(x1, x2, self.pooled_w, maps.shape[2])
        inside = (y >= 0) & (y <= maps.shape[1] - 1) & (x >= 0) & (x <= maps.shape[2] - 1)
        return np.where(inside, bilinear(maps, slice(None), np.where(inside, y, 0), np.where(inside, x, 0)), 0)


def _bins(start: np.floating, end: np.floating, count: int, size: int) -> list[slice]:
    """Return ``count`` bins from ``start`` to ``end`` inclusive, as slices within an axis of ``size`` elements.

    Together the bins are at least one element long.
    """
    step = max(end - start + 1, start.dtype.type(1)) / start.dtype.type(count)
    edges = [(start + np.floor(n * step), start + np.ceil((n + 1) * step)) for n in range(count)]
    return [slice(edge(first, size), edge(last, size)) for first, last in edges]


def _places(start: np.floating, end: np.floating, count: int, size: int) -> np.ndarray:
    """Return ``count`` coordinates from ``start`` to ``end``, which are fractions of an axis of ``size`` elements.

    A single coordinate lies in the middle.
    """
    if count == 1:
        return np.array([(start + end) * (size - 1) / 2])
    step = (end - start) * (size - 1) / (count - 1)
    return np.append(np.arange(count - 1, dtype=start.dtype) * step + start * (size - 1), end * (size - 1))
