"""GridSample: sample an image at any coordinates.  Spec: image/grid-sample-9."""

import numpy as np

from irrun.kernels.resampling import cubic_weights
from irrun.opdef import Op, Site, Value, attr, op, ports
from irrun.ops._sampling import is_integer, saturated
from irrun.types import PartialShape

_FAR = 2.0**40
"""A coordinate beyond any image that f32 and i64 still hold exactly."""


@op("GridSample", since=9, spec="image/grid-sample-9")
class GridSample(Op):
    """Sample ``data`` [N,C,H,W] at the coordinates (x, y) in ``grid`` [N,Ho,Wo,2].

    The coordinates -1 and 1 are the two ends of the image.

    C1  ``data`` and ``grid`` are 4D.
    C2  The last dim of ``grid`` is 2.
    C3  ``data`` and ``grid`` have the same batch size.
    """

    align_corners = attr.bool(False)
    mode = attr.choice("bilinear", "bicubic", "nearest", default="bilinear")
    padding_mode = attr.choice("zeros", "border", "reflection", default="zeros")
    inputs = ports(data="T", grid="T1")
    types = {"T": "numeric boolean", "T1": "float"}

    def infer(self, at: Site, data: Value, grid: Value) -> Value:
        for name, value in (("data", data), ("grid", grid)):
            at.require(value.rank in (None, 4), "C1", f"{name} is {value.shape}, not 4D")
        batch, channels, _, _ = data.shape.dims or PartialShape.of_rank(4)
        points, height, width, pair = grid.shape.dims or PartialShape.of_rank(4)
        at.require(pair.fits(2), "C2", f"the last dim of grid {grid.shape} is {pair}, not 2")
        both = batch.meet(points)
        at.require(both is not None, "C3", f"data {data.shape} and grid {grid.shape} differ in the batch size")
        assert both is not None
        return data.reshaped([both, channels, height, width])

    def run(self, data: np.ndarray, grid: np.ndarray) -> np.ndarray:
        shape = data.shape[:2] + grid.shape[1:3]
        if data.shape[2] * data.shape[3] == 0:
            return np.zeros(shape, data.dtype)
        grid = grid.astype(np.float64 if grid.dtype == np.float64 else np.float32, copy=False)
        x = self._denormalised(grid[..., 0], data.shape[3])
        y = self._denormalised(grid[..., 1], data.shape[2])
        if self.mode == "nearest":
            return self._read(data, np.rint(y), np.rint(x))
        out = np.zeros(shape, np.result_type(data, np.float32))
        columns = self._neighbours(x)
        for row, of_row in self._neighbours(y):
            line = np.zeros_like(out)
            for column, of_column in columns:
                line += of_column[:, None] * self._read(data, row, column)
            out += of_row[:, None] * line
        # OpenVINO's CPU plugin also rounds u8 and i8, but truncates i32 and i64
        return saturated(np.rint(out), data.dtype) if is_integer(data.dtype) else out.astype(data.dtype)

    def _denormalised(self, place: np.ndarray, size: int) -> np.ndarray:
        """Return coordinates between -1 and 1 as coordinates in pixels along an axis of ``size``."""
        return (place + 1) * (size - 1) / 2 if self.align_corners else ((place + 1) * size - 1) / 2

    def _neighbours(self, place: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the coordinates of the pixels around each place along an axis, with their weights."""
        first = np.floor(place)
        part = place - first
        if self.mode == "bilinear":
            return [(first, 1 - part), (first + 1, part)]
        weights = cubic_weights(part, -0.75)
        return [(first + i - 1, weights[..., i]) for i in range(4)]

    def _read(self, data: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the pixels [N,C,Ho,Wo] at integer coordinates [N,Ho,Wo], which may lie outside the image."""
        rows, columns = self._inside(y, data.shape[2]), self._inside(x, data.shape[3])
        batch = np.arange(len(data))[:, None, None]
        pixels = np.moveaxis(data[batch, :, rows, columns], -1, 1)
        if self.padding_mode == "zeros":
            inside = (y >= 0) & (y < data.shape[2]) & (x >= 0) & (x < data.shape[3])
            pixels = np.where(inside[:, None], pixels, np.zeros((), data.dtype))
        return pixels

    def _inside(self, place: np.ndarray, size: int) -> np.ndarray:
        """Return the index of the pixel that ``padding_mode`` reads for each place along an axis of ``size``."""
        index = np.nan_to_num(np.clip(place, -_FAR, _FAR), nan=-_FAR).astype(np.int64)
        if self.padding_mode != "reflection":
            return np.clip(index, 0, size - 1)
        period = max(2 * (size - 1), 1) if self.align_corners else 2 * size
        index = np.abs(index) % period if self.align_corners else index % period
        return np.where(index < size, index, period - index - (0 if self.align_corners else 1))
