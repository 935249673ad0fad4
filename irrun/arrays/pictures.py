"""Read pictures as inputs of a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from irrun.arrays.reading import HEAD, refuse_foreign, why
from irrun.base.extras import install
from irrun.ir.parse import require_file
from irrun.model import Layer, Model
from irrun.model.lookup import bad_feed
from irrun.running.generate import declared
from irrun.types import ElementType, PartialShape

__all__ = ["AS_THEY_ARE", "Pictures", "read_picture"]


@dataclass(frozen=True, slots=True)
class Pictures:
    """How the pixels of a picture become the values of an input: ``(pixel - mean) / scale``.

    ``mean`` and ``scale`` hold one number, or one for each channel in the order of the input; empty tuples leave the
    pixels, which are 0 to 255. ``resize`` says how a picture gets the height and width of the input: ``stretch``
    changes its proportions, ``crop`` cuts its edges off, ``pad`` adds black edges. An empty ``layout`` takes the dim
    that is 1 or 3 as the channels.
    """

    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    bgr: bool = False
    resize: Literal["stretch", "crop", "pad"] = "stretch"
    layout: Literal["NCHW", "NHWC"] | None = None


AS_THEY_ARE: Final = Pictures()
"""Pass the RGB values 0 to 255."""


def read_picture(
    model: Model, number: int, path: str, element_type: ElementType, pictures: Pictures
) -> tuple[np.ndarray, str]:
    """Return a picture as the array of input ``number``, as ``element_type``, and a text that says how it was read.

    Raises FeedError (IR601) if the input takes no picture, or if the file cannot be read.
    """
    parameter = model.parameters[number]
    shape = declared(model, parameter)[1]
    order = _layout(shape, pictures.layout)
    if order is None:
        message = f"has shape {shape}, which no picture fits" + (f" as {pictures.layout}" if pictures.layout else "")
        help = "pictures fit [1,C,H,W] or [1,H,W,C] with C of 1 or 3; name dims that are open with --layout"
        raise bad_feed(model, parameter, message, help)
    _require_type(model, parameter, element_type, pictures)
    dims = dict(zip(order, shape))
    channels = 3 if "C" in dims and dims["C"].fits(3) else 1
    for option, numbers in (("--mean", pictures.mean), ("--scale", pictures.scale)):
        if len(numbers) not in (0, 1, channels):
            message = f"takes pictures of {channels} channels, but {option} has {len(numbers)} numbers"
            raise bad_feed(model, parameter, message, "pass one number, or one for each channel")
    pixels, resized = _pixels(model, parameter, path, channels, dims, pictures)
    colours = "grey" if channels == 1 else "BGR" if pictures.bgr else "RGB"
    parts = [colours, resized, *([order] if channels == 3 or len(order) > 2 else [])]
    if channels == 3 and pictures.bgr:
        pixels = pixels[:, :, ::-1]
    if pictures.mean or pictures.scale:
        pixels = (pixels.astype(np.float32) - _channels(pictures.mean, 0)) / _channels(pictures.scale, 1)
        parts.append(f"(0..255 - {_text(pictures.mean, 0)}) / {_text(pictures.scale, 1)}")
    else:
        parts.append("0 to 255")
    said = f"{path}: {', '.join(parts)}"
    if "C" not in order:
        return pixels[:, :, 0].astype(element_type.dtype), said
    axes = ["HWC".index(axis) for axis in order if axis in "HWC"]
    array = pixels.transpose(axes).astype(element_type.dtype, order="C")
    return (array[None] if "N" in order else array), said


def _channels(numbers: tuple[float, ...], default: int) -> np.ndarray:
    return np.array(numbers or (default,), np.float32)


def _text(numbers: tuple[float, ...], default: int) -> str:
    return ",".join(f"{number:g}" for number in numbers or (default,))


def _require_type(model: Model, parameter: Layer, element_type: ElementType, pictures: Pictures) -> None:
    """Raise FeedError (IR601) if an element type cannot hold the values of a picture."""
    holds_pixels = element_type.bits >= 16 if element_type.kind == "float" else element_type.bits >= 8
    if element_type.name in ("i8", "boolean", "string", "dynamic") or not holds_pixels:
        message = f"has type {element_type}, which cannot hold the values 0 to 255 of a picture"
        raise bad_feed(model, parameter, message, "pass an array instead")
    if element_type.kind != "float" and (pictures.mean or pictures.scale):
        message = f"has type {element_type}, which cannot hold the values of --mean and --scale"
        raise bad_feed(model, parameter, message, "leave them out, or pass an array instead")


def _pixels(
    model: Model, parameter: Layer, path: str, channels: int, dims: Any, pictures: Pictures
) -> tuple[np.ndarray, str]:
    """Return the pixels [H,W,C] of a picture in the size of the input, and how they got it."""
    try:
        from PIL import Image, ImageOps
    except ImportError:
        message = f"cannot be read from {path}: pictures need the package pillow"
        raise bad_feed(model, parameter, message, install("image")) from None
    try:
        require_file(Path(path))
        with open(path, "rb") as file:
            refuse_foreign(model, parameter, path, file.read(HEAD))
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened).convert("L" if channels == 1 else "RGB")
        width, height = before = image.size
        size = dims["W"].value or width, dims["H"].value or height
        said = f"{width}x{height}"
        if size != before:
            bilinear = Image.Resampling.BILINEAR
            if pictures.resize == "stretch":
                image = image.resize(size, bilinear)
            else:
                image = (ImageOps.fit if pictures.resize == "crop" else ImageOps.pad)(image, size, bilinear)
            words = {"stretch": "stretched", "crop": "cropped", "pad": "padded"}
            said += f" {words[pictures.resize]} to {size[0]}x{size[1]} (bilinear)"
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise bad_feed(model, parameter, f"cannot be read from {path}: {reason}", "check the path") from None
    return np.asarray(image, np.uint8).reshape(size[1], size[0], -1), said


def _layout(shape: PartialShape, wanted: str | None) -> str | None:
    """Return ``NCHW``, ``NHWC``, ``CHW``, ``HWC`` or ``HW``; None if no picture fits.

    Without ``wanted``, C is the dim that is 1 or 3.
    """
    dims = shape.dims
    if dims is None or (len(dims) == 4 and not dims[0].fits(1)):
        return None
    if len(dims) == 2:
        return "HW"
    batch, rest = ("N", dims[1:]) if len(dims) == 4 else ("", dims)
    if len(rest) != 3:
        return None
    for order, channels in (("CHW", rest[0]), ("HWC", rest[2])):
        is_named = wanted is not None and wanted[1:] == order and (channels.fits(1) or channels.fits(3))
        if is_named or (wanted is None and channels.value in (1, 3)):
            return batch + order
    return None
