"""Col2Im: an image put together from its sliding blocks.  Spec: movement/col2im-15."""

import itertools
import math

import numpy as np

from irrun.kernels.matmul import narrow, wide
from irrun.opdef import Op, Site, Value, attr, op, opt, ports
from irrun.ops._equal_parts import part
from irrun.types import INF, UNKNOWN_RANK, Dim, PartialShape


@op("Col2Im", since=15, spec="movement/col2im-15")
class Col2Im(Op):
    """Add up the blocks of ``[C * kernel, L]`` or ``[N, C * kernel, L]`` at their positions in the image.

    C1  ``data`` is 2D or 3D.
    C2  ``output_size`` and ``kernel_size`` have two entries, either as an input or as an attribute. Entries of
        ``output_size`` are not negative, those of ``kernel_size`` are positive.
    C3  ``strides``, ``dilations`` and pads have two entries each. Strides are positive, the others are not negative.
    C4  The product of ``kernel_size`` divides the first dim of the blocks, C * kernel.
    C5  The number of blocks, L, is the one that follows from the sizes, strides, dilations and pads.
    """

    # OpenVINO has output_size and kernel_size as inputs, and writes "strides"
    output_size = attr.ints(None)
    kernel_size = attr.ints(None)
    strides = attr.ints((1, 1), aliases=("stride",))
    dilations = attr.ints((1, 1), aliases=("dilation",))
    pads_begin = attr.ints((0, 0))
    pads_end = attr.ints((0, 0))
    inputs = ports(data="T", output_size=opt("T_IND"), kernel_size=opt("T_IND"))
    types = {"T": "numeric boolean", "T_IND": "i32 i64"}

    def infer(self, at: Site, data: Value, output_size: Value | None = None, kernel_size: Value | None = None) -> Value:
        sizes = _two(at, "output_size", output_size, self.output_size, 0)
        kernel = _two(at, "kernel_size", kernel_size, self.kernel_size, 1)
        for name, least in (("strides", 1), ("dilations", 0), ("pads_begin", 0), ("pads_end", 0)):
            pair = getattr(self, name)
            at.require(
                len(pair) == 2 and min(pair) >= least,
                "C3",
                f"{name} {list(pair)} is not two entries of at least {least}",
            )
        at.require(data.rank in (None, 2, 3), "C1", f"data is {data.shape}, not 2D or 3D")
        if data.shape.dims is None:
            return data.reshaped(UNKNOWN_RANK)
        *batch, depth, count = data.shape
        channels = part(at, depth, kernel[0] * kernel[1], "C4", f"the channels of data {data.shape} times the kernel")
        down, across = self._blocks(sizes, kernel)
        at.require(
            count.meet(down * across) is not None, "C5", f"data {data.shape} has {count} blocks, not {down} × {across}"
        )
        return data.reshaped([*batch, channels, *sizes])

    def _blocks(self, sizes: tuple[Dim, Dim], kernel: tuple[Dim, Dim]) -> tuple[Dim, ...]:
        """Return the number of blocks down and across the image."""
        pads = [begin + end for begin, end in zip(self.pads_begin, self.pads_end)]
        return tuple(
            ((size + (pad - 1) - (k - 1) * dilation) // stride + 1).max(0)
            for size, pad, k, dilation, stride in zip(sizes, pads, kernel, self.dilations, self.strides)
        )

    def run(
        self, data: np.ndarray, output_size: np.ndarray | None = None, kernel_size: np.ndarray | None = None
    ) -> np.ndarray:
        size = self.output_size if output_size is None else tuple(output_size.tolist())
        kernel = self.kernel_size if kernel_size is None else tuple(kernel_size.tolist())
        *batch, depth, _ = data.shape
        down, across = map(int, self._blocks((Dim(size[0]), Dim(size[1])), (Dim(kernel[0]), Dim(kernel[1]))))
        blocks = data.astype(wide(data.dtype)).reshape(*batch, depth // math.prod(kernel), *kernel, down, across)
        padded = [n + begin + end for n, begin, end in zip(size, self.pads_begin, self.pads_end)]
        image = np.zeros((*blocks.shape[:-4], *padded), blocks.dtype)
        for i, j in itertools.product(*map(range, kernel)):
            rows, columns = (
                slice(tap * dilation, tap * dilation + stride * count, stride)
                for tap, dilation, stride, count in zip((i, j), self.dilations, self.strides, (down, across))
            )
            image[..., rows, columns] += blocks[..., i, j, :, :]
        top, left = self.pads_begin
        return narrow(image[..., top : top + size[0], left : left + size[1]], data.dtype)


def _two(at: Site, name: str, value: Value | None, attribute: tuple[int, ...] | None, least: int) -> tuple[Dim, Dim]:
    """Return the two entries, each at least ``least``, of ``name``: an input (``value``) or an attribute."""
    present = "both an input and an attribute" if value is not None else "neither an input nor an attribute"
    at.require((value is None) != (attribute is None), "C2", f"{name} is {present}")
    if value is None:
        entries = tuple(Dim(n) for n in attribute or ())
        at.require(len(entries) == 2, "C2", f"{name} {list(attribute or ())} does not have two entries")
    else:
        at.require(
            value.shape.meet(PartialShape.of([2])) is not None, "C2", f"{name} is {value.shape}, not 1D of two elements"
        )
        entries = value.dims() or (Dim(-INF, INF),) * 2
    first, second = entries
    at.require(first.hi >= least and second.hi >= least, "C2", f"{name} [{first},{second}] has an entry below {least}")
    return first.max(least), second.max(least)
