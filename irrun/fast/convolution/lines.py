"""Convolutions along one axis, of channels-first data: products of rows that overlap in memory.

The data is turned to [positions, channels], with zeros for the pads, unless it lies so in memory. A window is then one
row of a matrix, which begins a stride after the row of the window before it. The result has its channels last in
memory, as products and further convolutions read it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from irrun.base.thresholds import least
from irrun.fast.arithmetic import WORK_PER_NUMBER
from irrun.fast.copying import copying, reads_turned, turning
from irrun.fast.machine.calls import in_calls
from irrun.fast.machine.memory import data_address, row_at
from irrun.fast.machine.processor import ROWS, compiled
from irrun.fast.machine.sharing import share, share_call
from irrun.fast.panels import multiply_part, then_of
from irrun.fast.precision.bf16 import multiply_pairs, round_rows, words
from irrun.fast.product import PackedMatrix, RoundedMatrix
from irrun.kernels.cast import rounded_to_bf16
from irrun.kernels.convolution.planes import Filters
from irrun.kernels.convolution.windows import Axis
from irrun.kernels.matmul import ConstantForm
from irrun.opdef import Call, Calls, Epilogue, Joins, Kernel, Operands, Packing

__all__ = ["line"]

_MIN_FILTERS_ELEMENTS: Final = 1 << 12
"""The fewest elements of filters for which this is worth turning the data."""


def line(filters: Filters, axes: tuple[Axis, ...], batch: int, precision: Operands) -> Kernel | None:
    """Return the kernel of a convolution of f32 along one axis, or None if there is none for the filters.

    The filters are finite, or there are no pads. ``precision`` is that of data and filters.
    """
    (axis,) = axes
    if filters.groups > 1 or axis.dilation > 1 or filters.size < least(_MIN_FILTERS_ELEMENTS):
        return None
    ins, outs, rounds = filters.ins, filters.outs, precision == "bf16"
    held, packed = words(ins) if rounds else ins, _PackedLine.of(filters.source, precision)
    places, kept = axis.inside
    name, packing = "compiled in bf16" if rounds else "compiled", Packing((1,), packed.panels.nbytes)
    flops = 2 * batch * axis.out * filters.size

    def kernel(epilogue: Epilogue | None = None) -> Kernel:
        def call(data: np.ndarray, _: np.ndarray, residual: np.ndarray | None = None) -> np.ndarray:
            result = np.empty((batch, axis.out, outs), np.float32)
            padded = np.zeros((axis.reach, held), np.float32)
            rows = np.lib.stride_tricks.as_strided(
                padded, (axis.out, axis.kernel * held), (4 * axis.stride * held, 4), writeable=False
            )
            more = None if residual is None else np.ascontiguousarray(residual.swapaxes(1, 2))
            more = rounded_to_bf16(more) if more is not None and epilogue is not None and epilogue.rounds else more
            for n, image in enumerate(data[..., kept]):
                _fill(image, padded[places], rounds)
                added = None if more is None else more[n]
                work = flops // batch
                arguments = rows, packed.panels, result[n], 0, True, *then_of(epilogue, added, 0)
                share(multiply_pairs if rounds else multiply_part, axis.out, work, *arguments, unit=ROWS)
            if epilogue is not None and epilogue.change is not None:
                epilogue.change(result)
            return result.swapaxes(1, 2)

        def calls(data: np.ndarray, _: np.ndarray | None = None, *, out: np.ndarray, spare: np.ndarray) -> Calls:
            memory = spare.view(np.float32)
            padded, turned = memory[: axis.reach * held].reshape(axis.reach, held), memory[axis.reach * held :]
            rows = np.lib.stride_tricks.as_strided(
                padded, (axis.out, axis.kernel * held), (4 * axis.stride * held, 4), writeable=False
            )
            made: list[Call] = []
            for n, image in enumerate(data[..., kept]):
                made += [
                    Call(_clear, (data_address(part), held), len(part))
                    for part in (padded[: places.start], padded[places.stop :])
                    if len(part)
                ]
                made += _filling(image, padded[places], turned, rounds)
                arguments = rows, packed.panels, out[n], 0, True, *then_of(epilogue, None, 0)
                made.append(Call(multiply_pairs if rounds else multiply_part, arguments, axis.out, ROWS, 1))
            change = None if epilogue is None else epilogue.change
            return [*made, *(() if change is None else change.calls(out.reshape(-1, outs)))]

        spare_bytes = 4 * (axis.reach * held + ins * (kept.stop - kept.start))
        has_calls = epilogue is None or not epilogue.residual
        last = in_calls(
            name,
            calls,
            (batch, axis.out, outs),
            np.float32,
            flops,
            flops=flops,
            packing=packing,
            spare_bytes=spare_bytes,
            reads_view=reads_turned,
        )
        joins = Joins(
            with_epilogue=kernel if epilogue is None else None, bias_axis=1, channels_last=last if has_calls else None
        )
        return Kernel(call, name, flops=flops, packing=packing, joins=joins)

    return kernel()


def _fill(image: np.ndarray, target: np.ndarray, rounds: bool) -> None:
    """Fill ``target`` [positions, channels] with an image [channels, positions], rounded to bf16 if ``rounds``."""
    is_turned = image.T.flags.c_contiguous
    if not rounds:
        if is_turned:
            target[...] = image.T
        else:
            _turn(image, target)
        return
    seen = image.T
    if not is_turned:
        seen = np.empty(seen.shape, np.float32)
        _turn(image, seen)
    ins = len(image)
    places = data_address(seen), ins, data_address(target), words(ins), ins
    share(round_rows, len(seen), WORK_PER_NUMBER * seen.size, *places)


def _filling(image: np.ndarray, target: np.ndarray, turned: np.ndarray, rounds: bool) -> Calls:
    """Return the calls that do what ``_fill`` does. ``turned`` is memory for the image."""
    if not image.T.flags.c_contiguous and not rounds:
        return turning(image, target)
    seen, made = image.T, list[Call]()
    if not seen.flags.c_contiguous:
        seen = turned[: image.size].reshape(seen.shape)
        made += turning(image, seen)
    ins = len(image)
    if rounds:
        return [*made, Call(round_rows, (data_address(seen), ins, data_address(target), words(ins), ins), len(seen))]
    return [copying(seen, target)]


class _PackedLine(ConstantForm):
    """Filters (1, out, in, positions) in panels, whose rows are the channels of each position in turn."""

    def __init__(self, source: np.ndarray, precision: Operands) -> None:
        super().__init__(source)
        taps = source[0].transpose(2, 1, 0)
        if precision == "bf16" and taps.shape[1] % 2:
            taps = np.pad(taps, ((0, 0), (0, 1), (0, 0)))
        matrix = taps.reshape(-1, taps.shape[2])
        self.panels = (RoundedMatrix if precision == "bf16" else PackedMatrix)(matrix).panels


def _turn(source: np.ndarray, target: np.ndarray) -> None:
    """Fill a matrix of f32 whose rows are contiguous with a transposed matrix."""
    held = np.ascontiguousarray(source)
    for call in turning(held, target):
        share_call(call, WORK_PER_NUMBER * source.size)


@compiled
def _clear(address: int, count: int, first: int, last: int) -> None:
    """Fill the rows from ``first`` to ``last`` of ``count`` numbers with zeros."""
    for i in range(first, last):
        row = row_at(address + 4 * i * count, count)
        for j in range(count):
            row[j] = 0
