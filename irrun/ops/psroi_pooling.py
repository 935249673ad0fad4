"""PSROIPooling: regions pooled bin by bin, each bin from its own channels.  Spec: detection/psroi-pooling-1."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.kernels.resampling import round_half_away
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._rois import bilinear, check_batches, check_regions, edge, regions


@op("PSROIPooling", since=1, spec="detection/psroi-pooling-1")
class PSROIPooling(Op):
    """Divide each region into ``group_size``² bins and average each bin.

    In mode average, each bin is the mean of its own channel of ``data``. In mode bilinear, it is the mean over the
    spatial bins, each of which interpolates its own channels of ``data`` at one point. Coordinates are then fractions
    of the feature map.

    C1  ``data`` is 4D, ``rois`` is 2D with five columns.
    C2  ``output_dim`` and ``group_size`` are positive. In mode bilinear, so are ``spatial_bins_x`` and
        ``spatial_bins_y``.
    C3  ``spatial_scale`` is positive.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    C5  ``data`` has ``output_dim`` channels for each bin (mode average) or spatial bin (mode bilinear).
    """

    output_dim = attr.int()
    group_size = attr.int(1)
    spatial_scale = attr.float()
    mode = attr.choice("average", "bilinear", default="average")
    spatial_bins_x = attr.int(1)
    spatial_bins_y = attr.int(1)
    inputs = ports(data="T", rois="T")
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, rois: Value) -> Value:
        for name in (
            "output_dim",
            "group_size",
            *(["spatial_bins_x", "spatial_bins_y"] if self.mode == "bilinear" else []),
        ):
            at.require(getattr(self, name) > 0, "C2", f"{name} is {getattr(self, name)}, not positive")
        at.require(self.spatial_scale > 0, "C3", f"spatial_scale is {self.spatial_scale:g}, not positive")
        count, channels = check_regions(at, data, rois, ("C1", "C4"))
        bins = self.group_size**2 if self.mode == "average" else self.spatial_bins_x * self.spatial_bins_y
        wanted = self.output_dim * bins
        at.require(
            channels.fits(wanted), "C5", f"data has {channels} channels, not {self.output_dim} for each of {bins} bins"
        )
        return data.reshaped([count, self.output_dim, self.group_size, self.group_size])

    def run(self, data: np.ndarray, rois: np.ndarray) -> np.ndarray:
        work = wide(data.dtype)
        out = np.zeros((len(rois), self.output_dim, self.group_size, self.group_size), work)
        boxes = regions(rois).astype(work)
        check_batches(boxes[:, 0], len(data), "C4")
        pool = self._average if self.mode == "average" else self._bilinear
        for n, (batch, *box) in enumerate(boxes):
            out[n] = pool(data[int(batch)].astype(work, copy=False), np.array(box))
        return narrow(out, data.dtype)

    def _average(self, maps: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Return the bins (outputs, rows, columns) of one region, each the mean of the elements that it covers."""
        height, width = maps.shape[1:]
        x1, y1, x2, y2 = (round_half_away(box) + np.array([0, 0, 1, 1], box.dtype)) * box.dtype.type(self.spatial_scale)
        split = maps.reshape(self.output_dim, self.group_size, self.group_size, height, width)
        out = np.zeros(split.shape[:3], maps.dtype)
        for row, down in enumerate(_bins(y1, y2, self.group_size, height)):
            for column, across in enumerate(_bins(x1, x2, self.group_size, width)):
                if (elements := split[:, row, column, down, across]).size:
                    out[:, row, column] = elements.mean((1, 2))
        return out

    def _bilinear(self, maps: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Return the bins (outputs, rows, columns) of one region, each the mean over its spatial bins."""
        height, width = maps.shape[1:]
        x1, y1, x2, y2 = box * box.dtype.type(self.spatial_scale)
        # the channels are ordered by spatial bin (y, x), then by output
        channel = np.arange(len(maps)).reshape(self.spatial_bins_y, self.spatial_bins_x, self.output_dim, 1, 1)
        y = _places(y1, y2, self.spatial_bins_y, self.group_size, height)[:, np.newaxis, np.newaxis, :, np.newaxis]
        x = _places(x1, x2, self.spatial_bins_x, self.group_size, width)[:, np.newaxis, np.newaxis, :]
        inside = (y >= 0) & (y <= height - 1) & (x >= 0) & (x <= width - 1)
        samples = bilinear(maps, channel, np.where(inside, y, 0), np.where(inside, x, 0))
        return np.where(inside, samples, 0).mean((0, 1))


def _bins(start: np.floating, end: np.floating, count: int, size: int) -> list[slice]:
    """Return ``count`` bins between ``start`` and ``end`` as slices of an axis of ``size`` elements.

    Each bin holds all the elements that it touches. Together the bins are at least a tenth of an element long.
    """
    step = max(end - start, start.dtype.type(0.1)) / start.dtype.type(count)
    edges = [(np.floor(start + n * step), np.ceil(start + (n + 1) * step)) for n in range(count)]
    return [slice(edge(first, size), edge(last, size)) for first, last in edges]


def _places(start: np.floating, end: np.floating, parts: int, count: int, size: int) -> np.ndarray:
    """Return ``count`` coordinates in each of ``parts`` parts of an axis, as (parts, count).

    ``start`` and ``end`` are fractions of the axis. A single coordinate lies in the middle of its part.
    """
    step = (end - start) / start.dtype.type(parts)
    begin = (start + np.arange(parts, dtype=start.dtype) * step)[:, np.newaxis] * (size - 1)
    if count == 1:
        return begin + step * (size - 1) / 2
    return begin + np.arange(count, dtype=start.dtype) * (step * (size - 1) / (count - 1))
