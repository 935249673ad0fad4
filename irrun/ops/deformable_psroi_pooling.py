"""DeformablePSROIPooling: PSROIPooling with offsets of the bins.  Spec: detection/deformable-psroi-pooling-1."""

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.kernels.resampling import round_half_away
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._rois import bilinear, blocks, check_batches, check_regions, refuse_samples, regions
from irrun.types import Dim, PartialShape


@op("DeformablePSROIPooling", since=1, spec="detection/deformable-psroi-pooling-1")
class DeformablePSROIPooling(Op):
    """Divide each region into ``group_size``² bins and average the samples of each bin, which read its own channel.

    ``offsets`` (x, then y) shift the bins by fractions of the region. Samples outside ``data`` do not count.

    C1  ``data`` and ``offsets`` are 4D, ``rois`` is 2D with five columns.
    C2  ``output_dim``, ``group_size``, ``spatial_bins_x``, ``spatial_bins_y`` and ``part_size`` are positive.
    C3  ``spatial_scale`` is positive.
    C4  Each batch index is from 0 to the batch size of ``data`` minus 1.
    C5  ``data`` has ``output_dim`` channels for each bin.
    C6  ``offsets`` holds two numbers for each region, class and part. The number of classes divides ``output_dim``.
    """

    output_dim = attr.int()
    spatial_scale = attr.float()
    group_size = attr.int(1)
    mode = attr.choice("bilinear_deformable", default="bilinear_deformable")
    spatial_bins_x = attr.int(1)
    spatial_bins_y = attr.int(1)
    trans_std = attr.float(1)
    part_size = attr.int(1)
    inputs = ports(data="T", rois="T", offsets=opt("T"))
    types = {"T": "float"}

    def infer(self, at: Site, data: Value, rois: Value, offsets: Value | None = None) -> Value:
        for name in ("output_dim", "group_size", "spatial_bins_x", "spatial_bins_y", "part_size"):
            at.require(getattr(self, name) > 0, "C2", f"{name} is {getattr(self, name)}, not positive")
        at.require(self.spatial_scale > 0, "C3", f"spatial_scale is {self.spatial_scale:g}, not positive")
        count, channels = check_regions(at, data, rois, ("C1", "C4"))
        wanted = self.output_dim * self.group_size**2
        at.require(
            channels.fits(wanted), "C5", f"data has {channels} channels, not {wanted} (output_dim * group_size²)"
        )
        if offsets is not None:
            at.require(offsets.rank in (None, 4), "C1", f"offsets is {offsets.shape}, not 4D")
            met = offsets.shape.meet(PartialShape.of([count, Dim.unknown(), self.part_size, self.part_size]))
            classes = offsets.shape[1].value
            divided = classes is None or (classes > 0 and 2 * self.output_dim % classes == classes % 2 == 0)
            parts = f"{self.part_size}² parts, {self.output_dim} outputs"
            at.require(
                met is not None and divided, "C6", f"offsets {offsets.shape} does not fit {count} regions, {parts}"
            )
            assert met is not None
            count = met[0]
        return data.reshaped([count, self.output_dim, self.group_size, self.group_size])

    def run(self, data: np.ndarray, rois: np.ndarray, offsets: np.ndarray | None = None) -> np.ndarray:
        refuse_samples(self.spatial_bins_y, self.spatial_bins_x, "spatial_bins_x and spatial_bins_y")
        work = wide(data.dtype)
        out = np.zeros((len(rois), self.output_dim, self.group_size, self.group_size), work)
        boxes = regions(rois).astype(work)
        check_batches(boxes[:, 0], len(data), "C4")
        for n, (batch, *box) in enumerate(boxes):
            shifts = np.zeros((1, 2, 1, 1), work) if offsets is None else self._scaled_offsets(offsets[n].astype(work))
            out[n] = self._pool(data[int(batch)].astype(work, copy=False), np.array(box), shifts)
        return narrow(out, data.dtype)

    def _scaled_offsets(self, offsets: np.ndarray) -> np.ndarray:
        """Return the offsets of one region, scaled by ``trans_std``: (outputs, x and y, bin rows, bin columns)."""
        parts = np.arange(self.group_size) * self.part_size // self.group_size
        split = offsets.reshape(len(offsets) // 2, 2, self.part_size, self.part_size)[:, :, parts][..., parts]
        return np.repeat(split, self.output_dim // len(split), 0) * offsets.dtype.type(self.trans_std)

    def _pool(self, maps: np.ndarray, box: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the bins (outputs, rows, columns) of one region, shifted by ``shifts``."""
        size, (height, width) = self.group_size, maps.shape[1:]
        half, least = box.dtype.type(0.5), box.dtype.type(0.1)
        whole = round_half_away(box) + np.array([0, 0, 1, 1], box.dtype)
        x1, y1, x2, y2 = whole * box.dtype.type(self.spatial_scale) - half
        wide, high = max(x2 - x1, least), max(y2 - y1, least)
        bins = np.arange(size, dtype=box.dtype)
        shape = (self.output_dim, size, size)
        x = np.broadcast_to(x1 + bins * (wide / size) + shifts[:, 0] * wide, shape)
        y = np.broadcast_to(y1 + bins[:, np.newaxis] * (high / size) + shifts[:, 1] * high, shape)
        channels = np.arange(len(maps)).reshape(*shape, 1, 1)
        sums, counts = np.zeros(shape, maps.dtype), np.zeros(shape, np.int64)
        for *bin, rows, columns in blocks(*shape, self.spatial_bins_y, self.spatial_bins_x):
            part = tuple(bin)
            # (output, bin row, bin column), then the samples in a bin
            at_x = x[part][..., np.newaxis, np.newaxis] + _places(wide / size, self.spatial_bins_x, columns)
            at_y = y[part][..., np.newaxis, np.newaxis]
            at_y = at_y + _places(high / size, self.spatial_bins_y, rows)[:, np.newaxis]
            inside = (at_y >= -half) & (at_y <= height - half) & (at_x >= -half) & (at_x <= width - half)
            near_y = np.clip(np.where(inside, at_y, 0), 0, height - 1)
            near_x = np.clip(np.where(inside, at_x, 0), 0, width - 1)
            sums[part] += np.where(inside, bilinear(maps, channels[part], near_y, near_x), 0).sum((3, 4))
            counts[part] += inside.sum((3, 4))
        return sums / np.maximum(counts, 1).astype(maps.dtype)


def _places(size: np.floating, count: int, samples: slice) -> np.ndarray:
    """Return the distances of some of the ``count`` samples from the beginning of a bin of ``size``; the first is 0."""
    return np.arange(samples.start, samples.stop).astype(size.dtype) * (size / count)
