"""Caches of keys and values in blocks: how rows lie in them, in floats or quantized as by OpenVINO's CPU plugin.

A cache is [blocks, heads, slots, width]. A cache in u8 or u4 has one of two layouts, here in bytes. By token,
a row has one or more groups, and each group holds its scale and zero point before its codes: [blocks, heads, slots,
groups * (8 + width / groups)]. By channel, each block holds a row of scales and one of zero points before its slots:
[blocks, heads, 8 + slots, width]. A code c stands for ``(c - zero) * scale``. A byte of a cache in u4 holds two
codes, the first in the high half. It counts as two elements, the first in the low half.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import ml_dtypes
import numpy as np

from irrun.extensions.internal._blocks import places
from irrun.kernels.matmul import narrow

__all__ = ["PARAMETERS", "Layout", "bits_of", "read", "rewrite", "write"]

PARAMETERS: Final = 8
"""The bytes of a scale and a zero point, each an f32."""


def bits_of(dtype: np.dtype) -> int:
    """Return the bits of a code in a cache of this dtype, or 0 for floats."""
    return {np.dtype(np.uint8): 8, np.dtype(ml_dtypes.uint4): 4}.get(dtype, 0)


@dataclass(frozen=True, slots=True)
class Layout:
    """How a cache holds rows of ``width`` elements, ``slots`` in a block. A code has ``bits``, a row ``groups``."""

    kind: Literal["floats", "by token", "by channel"]
    slots: int
    width: int
    bits: int = 0
    groups: int = 1

    @staticmethod
    def of(shape: tuple[int, ...], dtype: np.dtype, width: int) -> Layout | None:
        """Return the layout of a cache for rows of ``width`` elements, or None if its last dim contradicts them."""
        slots, row = shape[2:]
        bits = bits_of(dtype)
        if not bits:
            return Layout("floats", slots, width) if row == width else None
        spare = PARAMETERS * 8 // bits
        groups = (row - width) // spare
        if groups > 0 and row == width + groups * spare and width * bits % (8 * groups) == 0:
            return Layout("by token", slots, width, bits, groups)
        fits = row == width and slots > spare and width * bits % 8 == 0
        return Layout("by channel", slots - spare, width, bits) if fits else None

    @property
    def spare(self) -> int:
        """The elements of a scale and a zero point."""
        return PARAMETERS * 8 // self.bits


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
        codes, scale, zero = _quantized(rows.reshape(*rows.shape[:2], layout.groups, -1), -1, layout.bits)
        parameters = np.concatenate([scale, zero], -1).astype(np.float32).view(np.uint8)
        whole = np.concatenate([parameters, _packed(codes, layout.bits)], -1)
        cache[at, :, slots] = _elements(whole.reshape(*rows.shape[:2], -1), layout.bits)


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
    codes, scale, zero = _quantized(whole, 1, layout.bits)
    heads, parameters = len(block), np.concatenate([scale, zero], 1)
    scales = parameters.astype(np.float32).reshape(heads, -1).view(np.uint8).reshape(heads, layout.spare, -1)
    block[:, : layout.spare] = _elements(scales, layout.bits)
    end = layout.spare + whole.shape[1]
    block[:, layout.spare : end] = _elements(_packed(codes, layout.bits), layout.bits)


def _quantized(rows: np.ndarray, axis: int, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the codes of rows, and the scales and zero points of the ranges along ``axis``, as f32."""
    rows, most = rows.astype(np.float32), (1 << bits) - 1
    least, largest = rows.min(axis, keepdims=True), rows.max(axis, keepdims=True)
    scale = (largest - least) / np.float32(most)
    scale[scale == 0] = np.float32(1e-4)  # OpenVINO's scale of equal numbers
    zero = -least / scale
    return np.clip(np.rint(rows / scale + zero), 0, most).astype(np.uint8), scale, zero


def _packed(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return codes as bytes: of two codes in u4, the first is the high half of a byte."""
    return codes if bits == 8 else codes[..., ::2] << 4 | codes[..., 1::2]


def _unpacked(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes that bytes hold, u8."""
    return packed if bits == 8 else np.stack([packed >> 4, packed & 15], -1).reshape(*packed.shape[:-1], -1)


def _elements(packed: np.ndarray, bits: int) -> np.ndarray:
    """Return bytes as the elements of a cache: of two elements in u4, the first is the low half of a byte."""
    if bits == 8:
        return packed
    halves = np.stack([packed & 15, packed >> 4], -1)
    return halves.reshape(*packed.shape[:-1], -1).astype(ml_dtypes.uint4)


def _packed_elements(elements: np.ndarray, bits: int) -> np.ndarray:
    """Return the bytes of elements of a cache."""
    if bits == 8:
        return elements
    halves = elements.astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4


def _decoded(blocks: np.ndarray, layout: Layout, work: np.dtype) -> np.ndarray:
    """Return the rows of whole blocks, [blocks, heads, slots, width], in the dtype ``work``; perhaps ``blocks``."""
    if layout.kind == "floats":
        return blocks.astype(work, copy=False)
    raw, count, heads = _packed_elements(blocks, layout.bits), *blocks.shape[:2]
    if layout.kind == "by token":
        raw = raw.reshape(count, heads, layout.slots, layout.groups, -1)
        parameters = np.ascontiguousarray(raw[..., :PARAMETERS]).view(np.float32)
        codes = _unpacked(raw[..., PARAMETERS:], layout.bits)
        scale, zero = parameters[..., :1], parameters[..., 1:]
    else:
        parameters = np.ascontiguousarray(raw[:, :, : layout.spare]).reshape(count, heads, -1).view(np.float32)
        scale, zero = np.moveaxis(parameters.reshape(count, heads, 2, 1, layout.width), 2, 0)
        codes = _unpacked(raw[:, :, layout.spare :], layout.bits)
    with np.errstate(all="ignore"):  # a block that nobody has written may hold any bytes
        rows = ((codes.astype(np.float32) - zero) * scale).astype(work)
    return rows.reshape(count, heads, layout.slots, layout.width)
