"""Caches of keys and values in blocks: how rows lie in them, in floats or quantized as by OpenVINO's CPU plugin.

A cache is [blocks, heads, slots, width]. In u8, there are two layouts. By token, each row holds its scale and zero
point before its codes: [blocks, heads, slots, 8 + width]. By channel, each block holds a row of scales and one of zero
points, in 4 rows of bytes each, before its slots: [blocks, heads, 8 + slots, width]. A code c stands for
``(c - zero) * scale``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from irrun.extensions.internal._blocks import places
from irrun.kernels.matmul import narrow

__all__ = ["PARAMETERS", "Layout", "read", "rewrite", "write"]

PARAMETERS: Final = 8
"""The bytes of a scale and a zero point, each an f32."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cache holds rows of ``width`` elements, ``slots`` in a block."""

    kind: Literal["floats", "by token", "by channel"]
    slots: int
    width: int

    @staticmethod
    def of(shape: tuple[int, ...], dtype: np.dtype, width: int) -> Layout | None:
        """Return the layout of a cache for rows of ``width`` elements, or None if its last dim contradicts them."""
        slots, row = shape[2:]
        if dtype == np.uint8 and row == width + PARAMETERS:
            return Layout("by token", slots, width)
        if row != width:
            return None
        if dtype == np.uint8:
            return Layout("by channel", slots - PARAMETERS, width) if slots > PARAMETERS else None
        return Layout("floats", slots, width)


def read(cache: np.ndarray, layout: Layout, blocks: np.ndarray, count: int, work: np.dtype) -> np.ndarray:
    """Return the rows at the first ``count`` positions of a sequence, [heads, count, width] of the dtype ``work``.

    ``blocks`` are the blocks of the sequence. The rows of a block -1, which has been evicted, are zeros.
    """
    blocks = blocks[: -(-count // layout.slots)]
    rows = _decoded(cache[blocks], layout, work)
    if (blocks < 0).any():
        rows[blocks < 0] = 0
    heads = rows.shape[1]
    return rows.swapaxes(0, 1).reshape(heads, -1, layout.width)[:, :count]


def write(cache: np.ndarray, layout: Layout, blocks: np.ndarray, first: int, rows: np.ndarray) -> None:
    """Write ``rows`` [count, heads, width] to the positions of a sequence from ``first`` on."""
    if layout.kind == "by channel":
        for block, begin, part in _parts(layout, blocks, first, rows):
            _append_by_channel(cache[block], layout, begin, part)
        return
    at, slots = places(blocks, np.arange(first, first + len(rows)), layout.slots)
    if layout.kind == "floats":
        cache[at, :, slots] = narrow(rows, cache.dtype)
    else:
        codes, scale, zero = _quantized(rows, -1)
        parameters = np.concatenate([scale, zero], -1).astype(np.float32).view(np.uint8)
        cache[at, :, slots] = np.concatenate([parameters, codes], -1)


def rewrite(
    cache: np.ndarray, layout: Layout, block: int, count: int, change: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Replace the first ``count`` rows of a block, f32 [heads, count, width], by what ``change`` returns for them."""
    rows = change(_decoded(cache[block : block + 1], layout, np.dtype(np.float32))[0, :, :count])
    write(cache, layout, np.array([block]), 0, rows.swapaxes(0, 1))


def _parts(layout: Layout, blocks: np.ndarray, first: int, rows: np.ndarray) -> list[tuple[int, int, np.ndarray]]:
    """Return the rows for each block that a sequence writes to, with the number of the block and its first slot."""
    parts: list[tuple[int, int, np.ndarray]] = []
    done = 0
    while done < len(rows):
        block, begin = divmod(first + done, layout.slots)
        part = rows[done : done + layout.slots - begin]
        parts.append((int(blocks[block]), begin, part))
        done += len(part)
    return parts


def _append_by_channel(block: np.ndarray, layout: Layout, begin: int, rows: np.ndarray) -> None:
    """Write rows [count, heads, width] to a block from slot ``begin`` on, and quantize the rows before them again."""
    before = _decoded(block[None], layout, np.dtype(np.float32))[0, :, :begin]
    whole = np.concatenate([before, rows.swapaxes(0, 1).astype(np.float32)], 1)
    codes, scale, zero = _quantized(whole, 1)
    heads, parameters = len(block), np.concatenate([scale, zero], 1)
    block[:, :PARAMETERS] = (
        parameters.astype(np.float32).reshape(heads, -1).view(np.uint8).reshape(heads, PARAMETERS, layout.width)
    )
    block[:, PARAMETERS : PARAMETERS + whole.shape[1]] = codes


def _quantized(rows: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the codes of rows, and the scales and zero points of the ranges along ``axis``, as f32."""
    rows = rows.astype(np.float32)
    least, largest = rows.min(axis, keepdims=True), rows.max(axis, keepdims=True)
    scale = (largest - least) / np.float32(255)
    scale[scale == 0] = np.float32(1e-4)  # OpenVINO's scale of equal numbers
    zero = -least / scale
    return np.clip(np.rint(rows / scale + zero), 0, 255).astype(np.uint8), scale, zero


def _decoded(blocks: np.ndarray, layout: Layout, work: np.dtype) -> np.ndarray:
    """Return the rows of whole blocks, [blocks, heads, slots, width], in the dtype ``work``; perhaps ``blocks``."""
    if layout.kind == "floats":
        return blocks.astype(work, copy=False)
    if layout.kind == "by token":
        parameters = np.ascontiguousarray(blocks[..., :PARAMETERS]).view(np.float32)
        codes = blocks[..., PARAMETERS:]
        scale, zero = parameters[..., :1], parameters[..., 1:]
    else:
        count, heads = blocks.shape[:2]
        parameters = np.ascontiguousarray(blocks[:, :, :PARAMETERS]).reshape(count, heads, -1).view(np.float32)
        scale, zero = np.moveaxis(parameters.reshape(count, heads, 2, 1, layout.width), 2, 0)
        codes = blocks[:, :, PARAMETERS:]
    with np.errstate(all="ignore"):  # a block that nobody has written may hold any bytes
        return ((codes.astype(np.float32) - zero) * scale).astype(work)
