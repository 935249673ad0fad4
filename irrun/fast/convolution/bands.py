"""Consecutive convolutions computed together, a band of rows at a time.

The bands between them stay in the cache, and no large value is in memory as a whole: MobileNetV2 takes 432 MB for a
picture of 1792 x 1792 pixels, and 552 MB without bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np

from irrun.base.thresholds import least
from irrun.fast.convolution.stage import Stage
from irrun.fast.convolution.windows import convolution_of, geometry_of
from irrun.kernels.blocks import each_block, scratch
from irrun.opdef import Index, Joins, Kernel, OnTileReady, Packing, ignore_tile

__all__ = ["chained"]

_MAX_BAND_BYTES: Final = 1 << 19
"""Bytes of the bands between the convolutions. They stay in the second-level cache together with the filters."""
_MIN_BETWEEN_BYTES: Final = 1 << 23
"""The least bytes between two convolutions for which bands pay off: fewer stay in the third-level cache, and threads
share the convolutions better in sequence (see ``sequences``)."""
_MAX_FILTERS_BYTES: Final = 1 << 18
"""The most bytes of the filters of a convolution, which are read again for each band."""
_MAX_STAGES: Final = 3
"""The most convolutions of a chain: there is scratch memory for two bands."""


def chained(first: Kernel, then: Kernel) -> Kernel | None:
    """Return the kernel that computes ``first`` and then ``then``, which reads its result, in bands.

    Return None if that does not pay off. The inputs of the kernel are those of ``first`` and, without the data, those
    of ``then``.
    """
    stages = (*first.joins.stages, *then.joins.stages)
    between = first.joins.stages[-1]
    small = all(stage.panels.nbytes <= _MAX_FILTERS_BYTES for stage in stages)
    if any(stage.rounded or stage.padded or stage.others or stage.change for stage in stages):
        return None
    if len(stages) > _MAX_STAGES or not small or between.row * between.axes[0].out < least(_MIN_BETWEEN_BYTES):
        return None
    return _Chain(stages, first.flops + then.flops).kernel()


@dataclass(frozen=True, slots=True)
class _Move:
    """One step for a band: ``stage`` computes ``rows`` of its output from the rows ``seen`` of its input.

    All but the first and the last index are those of bands in scratch memory. Before, the rows ``kept`` of the band are
    moved to its beginning.
    """

    stage: int
    kept: slice
    seen: slice
    into: slice
    rows: slice
    geometry: np.ndarray


class _Chain:
    """A chain of convolutions of the same batch."""

    def __init__(self, stages: Sequence[Stage], flops: int) -> None:
        self.stages, self.flops = tuple(stages), flops
        *before, self.last = self.stages
        each, step = 0, 1
        for stage, after in zip(reversed(before), reversed(self.stages[1:])):
            step *= after.axes[0].stride
            each += step * stage.row
        self.high = max(2, _MAX_BAND_BYTES // each)
        self.moves = lru_cache(1 << 8)(self._moves)

    def kernel(self) -> Kernel:
        counts = [2 + (stage.adds > 0) for stage in self.stages]
        filters = [1 + sum(counts[:n]) - n for n in range(len(counts))]
        name = "compiled depthwise" if any(stage.groups > 1 for stage in self.stages) else "compiled"
        packing = Packing(tuple(filters), sum(stage.panels.nbytes for stage in self.stages))
        joins = Joins(chain=chained, stages=self.stages)
        name = f"{name} in bands, channels last"
        return Kernel(self.call, name, out="tiles", flops=self.flops, packing=packing, joins=joins)

    def call(
        self, data: np.ndarray, *others: np.ndarray, out: np.ndarray | None = None,
        on_tile_ready: OnTileReady = ignore_tile,
    ) -> np.ndarray:  # fmt: skip
        high, broad, channels = self.last.axes[0].out, self.last.axes[1].out, self.last.channels
        whole = np.empty((len(data), high, broad, channels), np.float32) if out is None else out
        seen, residuals, place = np.ascontiguousarray(data), [], 0
        for stage in self.stages:
            place += 1
            residuals.append(np.ascontiguousarray(others[place]) if stage.adds else None)
            place += stage.adds > 0

        def part(index: Index) -> None:
            images, rows = index
            for image in range(images.start, images.stop):
                more = [None if residual is None else residual[image : image + 1] for residual in residuals]
                self._rows(seen[image : image + 1], more, whole[image : image + 1], rows)
            on_tile_ready((images, rows, slice(0, broad), slice(0, channels)))

        size, work = self.last.row, self.flops
        each_block(part, whole.shape[:2], size, whole.nbytes, work=work, least=2 * self.high * size)
        return whole

    def _rows(
        self, data: np.ndarray, residuals: Sequence[np.ndarray | None], out: np.ndarray, rows: slice
    ) -> None:  # fmt: skip
        """Fill some rows of the output of one image."""
        heights, moves = self.moves(rows.start, rows.stop)
        bands = [
            scratch(n, out.dtype, 1, height, stage.axes[1].out, stage.channels)
            for n, (height, stage) in enumerate(zip(heights, self.stages))
        ]
        end = len(self.stages) - 1
        for move in moves:
            n, stage, residual = move.stage, self.stages[move.stage], residuals[move.stage]
            source = data if n == 0 else bands[n - 1]
            target = out if n == end else bands[n]
            if move.kept.start < move.kept.stop:
                target[:, : move.kept.stop - move.kept.start] = target[:, move.kept]
            if n < end:
                target = target[:, move.into]
                residual = None if residual is None else residual[:, move.rows]
            count = (move.rows.stop - move.rows.start) * stage.axes[1].out
            function, arguments = convolution_of(stage, move.geometry, source[:, move.seen], residual, target)
            function(*arguments, 0, count)

    def _moves(self, begin: int, end: int) -> tuple[list[int], list[_Move]]:
        """Return the rows of each band, and what to do in turn for the rows ``begin`` to ``end`` of the output."""
        heights, held = [0] * (len(self.stages) - 1), [slice(0, 0)] * (len(self.stages) - 1)
        moves: list[_Move] = []
        for start in range(begin, end, self.high):
            rows = slice(start, min(start + self.high, end))
            band: list[_Move] = []
            for n, stage in reversed(list(enumerate(self.stages))):
                kept = into = slice(0, 0)
                firsts = rows.start, 0
                if n < len(heights):
                    needed, known = rows, held[n]
                    rows = slice(max(needed.start, known.stop), needed.stop)
                    if rows.start >= rows.stop:  # everything is there, or nothing but pads is seen
                        break
                    common = rows.start - needed.start
                    kept = slice(needed.start - known.start, known.stop - known.start) if common else kept
                    into, firsts = slice(common, common + rows.stop - rows.start), (0, 0)
                    held[n], heights[n] = needed, max(heights[n], needed.stop - needed.start)
                axis, seen = stage.axes[0].part(rows)
                band.append(_Move(n, kept, seen, into, rows, geometry_of(axis, stage.axes[1], (1, 1), firsts)))
                rows = seen
            for move in reversed(band):
                first = held[move.stage - 1].start if move.stage and move.seen.start < move.seen.stop else 0
                moves.append(replace(move, seen=slice(move.seen.start - first, move.seen.stop - first)))
        return heights, moves
