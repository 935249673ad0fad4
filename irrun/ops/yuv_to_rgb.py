"""Images in the formats NV12 and I420 as RGB and BGR.  Spec: image/nv12-to-{rgb,bgr}-8, image/i420-to-{rgb,bgr}-8.

Both formats hold a brightness Y for each pixel, and two colour values U and V for each square of four pixels: NV12 as
pairs in one plane, I420 in two planes.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from irrun.opdef import Op, Site, Value, op, opt, ports
from irrun.types import PartialShape

Planes = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Y [N,H,W], U and V [N,H/2,W/2]."""


class _YuvToRgb(Op):
    types = {"T": "u8 float"}
    blue_first: ClassVar[bool] = False

    def infer(self, at: Site, *planes: Value | None) -> Value:
        present = [plane for plane in planes if plane is not None]
        for plane in present:
            at.require(plane.rank in (None, 4), "C1", f"a plane is {plane.shape}, not 4D")
        first = present[0]
        batch, height, width, channels = first.shape.dims or PartialShape.of_rank(4)
        at.require(channels.fits(1), "C2", f"the first plane {first.shape} has {channels} channels, not 1")
        if len(present) == 1:
            whole = height.value is None or height.lo % 3 == 0
            even = width.value is None or width.lo % 2 == 0
            message = f"the height of the plane {first.shape} is not divisible by 3, or its width is odd"
            at.require(whole and even, "C3", message)
            return first.reshaped([batch, height // 3 * 2, width, 3])
        for plane in present[1:]:
            parts, rows, columns, colours = plane.shape.dims or PartialShape.of_rank(4)
            met = [a.meet(b) for a, b in ((batch, parts), (height, rows * 2), (width, columns * 2))]
            fits = None not in met and colours.fits(4 - len(present))  # two channels (U and V) or one
            at.require(fits, "C4", f"the colour plane {plane.shape} does not fit the first plane {first.shape}")
            batch, height, width = (dim for dim in met if dim is not None)
        return first.reshaped([batch, height, width, 3])

    def run(self, *planes: np.ndarray | None) -> np.ndarray:
        present = [plane for plane in planes if plane is not None]
        wide = np.result_type(present[0], np.float32)
        y, u, v = (plane.astype(wide) for plane in self._planes(present))
        u, v = (np.repeat(np.repeat(plane, 2, 1), 2, 2) - 128 for plane in (u, v))
        y = 1.164 * (y - 16)
        colours = [y + 1.596 * v, y - 0.813 * v - 0.391 * u, y + 2.018 * u]
        image = np.clip(np.stack(colours[::-1] if self.blue_first else colours, axis=-1), 0, 255)
        return (np.rint(image) if present[0].dtype == np.uint8 else image).astype(present[0].dtype)

    def _planes(self, inputs: Sequence[np.ndarray]) -> Planes:
        """Return the three planes from the inputs that are present."""
        raise NotImplementedError


def _split(plane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split a single plane into Y [N,H,W] and the colours below Y, flattened to [N,H*W/2]."""
    height = plane.shape[1] // 3 * 2
    return plane[:, :height, :, 0], plane[:, height:].reshape(len(plane), plane.shape[1] // 3 * plane.shape[2])


@op("NV12toRGB", since=8, spec="image/nv12-to-rgb-8")
class NV12toRGB(_YuvToRgb):
    """Compute an RGB image [N,H,W,3] from Y [N,H,W,1] and UV [N,H/2,W/2,2], or from one plane with UV below Y.

    C1  Each plane is 4D.
    C2  The first plane has one channel.
    C3  A single plane has 3/2 times the rows of the image, and an even width.
    C4  UV has the batch size of Y, half its height and width, and two channels.
    """

    inputs = ports(Y="T", UV=opt("T"))

    def _planes(self, inputs: Sequence[np.ndarray]) -> Planes:
        if len(inputs) == 1:
            y, rest = _split(inputs[0])
            pairs = rest.reshape(len(y), y.shape[1] // 2, y.shape[2] // 2, 2)
        else:
            y, pairs = inputs[0][..., 0], inputs[1]
        return y, pairs[..., 0], pairs[..., 1]


@op("NV12toBGR", since=8, spec="image/nv12-to-bgr-8")
class NV12toBGR(NV12toRGB):
    """Compute the same as NV12toRGB, with blue first.

    C1  Each plane is 4D.
    C2  The first plane has one channel.
    C3  A single plane has 3/2 times the rows of the image, and an even width.
    C4  UV has the batch size of Y, half its height and width, and two channels.
    """

    blue_first = True


@op("I420toRGB", since=8, spec="image/i420-to-rgb-8")
class I420toRGB(_YuvToRgb):
    """Compute an RGB image [N,H,W,3] from Y [N,H,W,1], U and V [N,H/2,W/2,1], or one plane with U and then V below Y.

    C1  Each plane is 4D.
    C2  The first plane has one channel.
    C3  A single plane has 3/2 times the rows of the image, and an even width.
    C4  U and V have the batch size of Y, half its height and width, and one channel.
    C5  There are one or three planes.
    """

    inputs = ports(Y="T", U=opt("T"), V=opt("T"))

    def infer(self, at: Site, *planes: Value | None) -> Value:
        count = sum(plane is not None for plane in planes)
        at.require(count != 2, "C5", f"there are {count} planes, not 1 or 3")
        return super().infer(at, *planes)

    def _planes(self, inputs: Sequence[np.ndarray]) -> Planes:
        if len(inputs) == 3:
            y, u, v = (plane[..., 0] for plane in inputs)
            return y, u, v
        y, rest = _split(inputs[0])
        shape = (len(y), y.shape[1] // 2, y.shape[2] // 2)
        u, v = np.split(rest, 2, axis=1)
        return y, u.reshape(shape), v.reshape(shape)


@op("I420toBGR", since=8, spec="image/i420-to-bgr-8")
class I420toBGR(I420toRGB):
    """Compute the same as I420toRGB, with blue first.

    C1  Each plane is 4D.
    C2  The first plane has one channel.
    C3  A single plane has 3/2 times the rows of the image, and an even width.
    C4  U and V have the batch size of Y, half its height and width, and one channel.
    C5  There are one or three planes.
    """

    blue_first = True
