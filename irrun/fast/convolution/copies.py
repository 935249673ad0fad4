"""Copies of data that convolutions read: with pads around a picture, or rounded to bf16."""

from __future__ import annotations

import numpy as np

from irrun.fast.functions import contracted
from irrun.fast.machine.late import array_at
from irrun.fast.machine.memory import floats_at
from irrun.fast.machine.processor import compiled
from irrun.fast.precision.bf16 import round_rows, words
from irrun.kernels.convolution.windows import Axis
from irrun.opdef import Call

__all__ = ["padding", "rounding"]


def rounding(source: int, target: int, rows: int, count: int, into: int = 0) -> Call:
    """Return the call that rounds f32 [rows, count] at an address to bf16 at another one: see ``round_rows``.

    The rows of bf16 are ``into`` words apart, or as many as each takes.
    """
    return Call(round_rows, (source, count, target, into or words(count), count), rows)


def padding(source: int, target: int, axes: tuple[Axis, ...], batch: int, channels: int, planes: bool = False) -> Call:
    """Return the call that copies f32 images at an address to another one, with zeros for the pads that windows see.

    ``axes`` are the windows along rows and columns. The copy is [batch, rows, columns, channels], and so are the
    images, unless they have ``planes``: their first axis is then the channels.
    """
    rows, line = axes
    sizes = rows.size, line.size, rows.reach, line.reach, rows.begin, line.begin
    return Call(_pad, (source, planes, target, channels, *sizes), batch * rows.reach * line.reach)


@compiled
def _pad(
    data: int, planes: bool, out: int, count: int, rows: int, columns: int, high: int, broad: int, top: int, left: int,
    first: int, last: int,
) -> None:  # fmt: skip
    """Fill the pixels from ``first`` to ``last`` of padded images of ``count`` channels with data, or with zeros.

    ``data`` and ``out`` are addresses. The images have so many ``rows`` and ``columns``, and ``high`` by ``broad``
    pixels with pads. If the data has ``planes``, its channels are its first axis.
    """
    size, position = rows * columns, first
    while position < last:
        line, begin = divmod(position, broad)
        image, y = divmod(line, high)
        end = min(broad, begin + last - position)
        from_x, to_x = end, end
        if 0 <= y - top < rows:
            from_x = min(max(begin, left), end)
            to_x = max(min(end, left + columns), from_x)
        pixels = array_at(floats_at(out + 4 * count * line * broad), count * broad)
        pixels[count * begin : count * from_x] = 0
        pixels[count * to_x : count * end] = 0
        inner, seen = pixels[count * from_x : count * to_x], (y - top) * columns + from_x - left
        if planes:
            _interleave(data + 4 * (image * count * size + seen), size, inner, count)
        else:
            inner[:] = array_at(floats_at(data + 4 * count * (image * size + seen)), inner.size)
        position += end - begin


@contracted
def _interleave(source: int, apart: int, target: np.ndarray, count: int) -> None:
    """Fill ``target`` f32 [pixels * count] with pixels. At ``source``, the channels are ``apart`` numbers apart."""
    pixels = target.size // count
    if count == 3:
        one, two = array_at(floats_at(source), pixels), array_at(floats_at(source + 4 * apart), pixels)
        three = array_at(floats_at(source + 8 * apart), pixels)
        for n in range(pixels):
            target[3 * n], target[3 * n + 1], target[3 * n + 2] = one[n], two[n], three[n]
        return
    for k in range(count):
        plane = array_at(floats_at(source + 4 * k * apart), pixels)
        for n in range(pixels):
            target[n * count + k] = plane[n]
