"""The inputs of a run, from ``-i NAME=SPEC``: array files, pictures, JSON literals and generated numbers."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import click
import numpy as np

from irrun.diagnostics import Diagnostic, FeedError, human
from irrun.ir.parse import require_file
from irrun.lookup import bad_feed, position
from irrun.model import Layer, Model
from irrun.running.generate import GENERATORS, declared, element_types, generate
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, text_array

__all__ = ["Input", "gather", "gather_specs", "split", "stand_in"]

_GENERATED: Final = re.compile(rf"({'|'.join(GENERATORS)})(?::(.*))?", re.DOTALL)
_ARRAY: Final = re.compile(r"(.+\.npy)|(.+\.npz)(?::(.*))?", re.IGNORECASE | re.DOTALL)
_PICTURE: Final = re.compile(r".+\.(png|jpe?g|bmp|gif|webp|tiff?|p[bgpn]m)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a model. ``origin`` describes where the array comes from, as `irrun run` prints it."""

    name: str
    type: ElementType
    array: np.ndarray
    origin: str
    chosen: PartialShape | None = None
    """The declared shape if it is dynamic and irrun had to choose the dims, otherwise None."""


def gather(model: Model, options: Sequence[str], seed: int, max_memory: int) -> list[Input]:
    """Return the inputs of a model in the order of its Parameters.

    ``options`` are texts NAME=SPEC, or array files that hold inputs by name. An input that is not among them comes from
    the comment of an example, or is random numbers drawn with ``seed``. ``max_memory`` limits the bytes of each
    generated array. Raises FeedError (IR601), ExecutionError (IR604) for an array that is too large, and
    click.BadParameter for a text without ``=``.
    """
    specs: dict[int, str] = {}
    for number, spec in (item for text in options for item in split(model, text)):
        if number in specs:
            raise bad_feed(model, model.parameters[number], "is passed twice", "remove one of its options -i")
        specs[number] = spec
    return gather_specs(model, specs, seed, max_memory)


def gather_specs(model: Model, specs: Mapping[int, str], seed: int, max_memory: int) -> list[Input]:
    """Return the inputs of a model as ``gather`` does, from the SPEC of each, by position."""
    loaded = {
        number: _file(model, number, spec, max_memory) for number, spec in specs.items() if _ARRAY.fullmatch(spec)
    }
    types = element_types(model, loaded)
    return [
        _input(model, number, specs.get(number), loaded.get(number), types[number], seed, max_memory)
        for number in range(len(model.parameters))
    ]


def split(model: Model, text: str) -> list[tuple[int, str]]:
    """Split ``NAME=SPEC`` into the position of the input and the SPEC. The name may contain a ``=`` itself.

    A ``.npz`` file alone gives a SPEC for each of its arrays, which have the names of inputs. Raises FeedError (IR601),
    and click.BadParameter for a text without ``=``.
    """
    for equals in re.finditer("=", text):
        number = position(model, text[: equals.start()])
        if number is not None:
            return [(number, text[equals.end() :])]
    name, equals, _ = text.partition("=")
    if text.lower().endswith(".npz") and (not equals or os.path.exists(text)):
        return _archived(model, text)
    names = [f'"{p.name}"' for p in model.parameters]
    near = difflib.get_close_matches(name, [n for p in model.parameters for n in model.input_names(p)], 1, 0.5)
    help = f'did you mean "{near[0]}"?' if near else f"its inputs are {', '.join(names) or 'none'}"
    if not equals:
        raise click.BadParameter(f"{text} is not NAME=SPEC; write it as x=random", param_hint="-i")
    raise FeedError(Diagnostic("IR601", "error", f'the model has no input "{name}"', file=model.source.path, help=help))


def _archived(model: Model, path: str) -> list[tuple[int, str]]:
    """Return the position and SPEC of the input that each array of a .npz file is for. Raises FeedError (IR601)."""
    try:
        require_file(Path(path))
        with zipfile.ZipFile(path) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist()]
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        why = _why(error) if isinstance(error, OSError) else str(error)
        message = f"the inputs cannot be read from {path}: {why}"
        raise FeedError(
            Diagnostic("IR601", "error", message, help="check the path, or write it with numpy.savez")
        ) from None
    specs: list[tuple[int, str]] = []
    for key in keys:
        number = position(model, key)
        if number is None:
            names = ", ".join(f'"{p.name}"' for p in model.parameters) or "none"
            message = f'{path} holds an array "{key}", but the model has no such input'
            help = f"its inputs are {names}; pass single arrays as NAME={path}:KEY"
            raise FeedError(Diagnostic("IR601", "error", message, file=model.source.path, help=help))
        specs.append((number, f"{path}:{key}"))
    return specs


def _input(
    model: Model, number: int, spec: str | None, loaded: np.ndarray | None, element_type: ElementType, seed: int,
    max_memory: int,
) -> Input:  # fmt: skip
    """Return the input at position ``number`` from its SPEC.

    ``loaded`` is the array of a .npy or .npz that the SPEC names. ``element_type`` is the type that the input has, or
    that the values of the others imply.
    """
    parameter = model.parameters[number]
    wanted, shape = declared(model, parameter)

    def ready(array: np.ndarray, origin: str, chosen: PartialShape | None = None) -> Input:
        kept = wanted if wanted.kind != "dynamic" else ElementType.of(array.dtype) or element_type
        return Input(parameter.name, kept, array, origin, chosen)

    if loaded is not None:
        return ready(_native(loaded, element_type), str(spec))
    if spec is None and parameter.id in model.contents:
        array, line = model.contents[parameter.id]
        return ready(array, f"from the comment at line {line}")
    generated = _GENERATED.fullmatch("random" if spec is None else spec)
    if generated:
        how, text = generated[1], generated[2]
        dims = None if text is None else _dims(model, parameter, text)
        array = generate(how, model, number, element_type, dims, seed, max_memory)
        chosen = shape if dims is None and not shape.is_static else None
        origin = f"random, seed {seed}" if how == "random" else how
        if spec is None:
            origin = f"not given: {origin}"
        if chosen is not None:
            origin += f", shape chosen for {chosen}"
        return ready(array, origin, chosen)
    assert spec is not None
    if _PICTURE.fullmatch(spec):
        return ready(_picture(model, parameter, spec, shape, element_type), spec)
    return ready(_literal(model, parameter, spec, element_type, free=wanted.kind == "dynamic"), "as given")


def _dims(model: Model, parameter: Layer, text: str) -> tuple[int, ...]:
    if not re.fullmatch(r"\[\s*(\d+\s*(,\s*\d+\s*)*)?\]", text):
        raise bad_feed(model, parameter, f'cannot have the dims "{text}"', "write them as [1,3,224,224]")
    dims = re.findall(r"\d+", text)
    if any(len(dim) > _MOST_DIGITS for dim in dims):
        raise bad_feed(model, parameter, f"cannot have a dim of more than {_MOST_DIGITS} digits")
    return tuple(map(int, dims))


_MOST_DIGITS: Final = 18
"""The most digits of a dim, so that it is less than 2^63."""


# ---------------------------------------------------------------------------------------------
# .npy and .npz


def _file(model: Model, number: int, spec: str, max_memory: int) -> np.ndarray:
    """Read the array for input ``number`` from a .npy or .npz file, of at most ``max_memory`` bytes.

    Raises FeedError (IR601).
    """
    match = _ARRAY.fullmatch(spec)
    assert match is not None
    parameter = model.parameters[number]
    path = match[1] or match[2]
    try:
        require_file(Path(path))
        with open(path, "rb") as file:  # np.load leaves a broken file open if it opens the file itself
            is_archive = zipfile.is_zipfile(file)
            if is_archive == (match[1] is not None):
                raise ValueError(f"the file is a {'.npz' if is_archive else '.npy'}")
            file.seek(0)
            if not is_archive:
                _require_size(file, os.fstat(file.fileno()).st_size, max_memory)
                file.seek(0)
                return np.load(file, allow_pickle=False)
            loaded = np.load(file, allow_pickle=False)
            key = _key(model, parameter, path, loaded.files, match[3])
            member = loaded.zip.getinfo(key if key in loaded.zip.namelist() else f"{key}.npy")
            with loaded.zip.open(member) as stream:
                _require_size(stream, member.file_size, max_memory)
            return loaded[key]
    except OSError as error:
        raise bad_feed(model, parameter, f"cannot be read from {path}: {_why(error)}", "check the path") from None
    except FeedError:
        raise
    except MemoryError:
        help = "the header of the array asks for more memory than there is; write it again with numpy.save"
        raise bad_feed(model, parameter, f"cannot be read from {path}: out of memory", help) from None
    except Exception as error:  # numpy, zipfile and the decompressors raise whatever a corrupt file leads them to
        raise bad_feed(model, parameter, f"cannot be read from {path}: {error}", "write it with numpy.save") from None


def _require_size(file: IO[bytes], size: int, max_memory: int) -> None:
    """Raise ValueError if the header of a .npy in ``file`` declares more than it holds, or more than ``max_memory``.

    ``size`` is the number of bytes of the .npy. numpy would allocate the array that the header declares before it
    reads the first byte.
    """
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"it has version {version[0]}.{version[1]} of the .npy format, which holds no plain array")
    shape, _, dtype = _HEADERS[version](file)
    declared, held = math.prod(shape) * dtype.itemsize, size - file.tell()
    if declared > held and not dtype.hasobject:
        raise ValueError(f"its header declares {declared:,} bytes, but it holds {max(held, 0):,}")
    if declared > max_memory:
        raise ValueError(f"it takes {human(declared)}, more than the {human(max_memory)} allowed")


_HEADERS: Final = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""The functions that read the header of a .npy, by its version. Version 3.0 is only for names of fields."""


def _key(model: Model, parameter: Layer, path: str, keys: list[str], key: str | None) -> str:
    """Return the key of the array to read from a .npz: ``key``, or a name of the input, or the only key."""
    named = [key] if key is not None else [n for n in model.input_names(parameter) if n in keys] or keys
    if len(named) == 1 and named[0] in keys:
        return named[0]
    problem = f'{path} has no array "{key}"' if key is not None else f"no array in {path} has its name"
    listed = ", ".join(keys[:8]) + (", ..." if len(keys) > 8 else "")
    raise bad_feed(
        model, parameter, f"cannot be read: {problem}", f"name one as {path}:KEY; it holds {listed or 'none'}"
    )


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _native(array: np.ndarray, wanted: ElementType) -> np.ndarray:
    """Return the array in the byte order of this machine, and as ml_dtypes array if the input is of such a type.

    .npy files know no bf16, f8 or 4-bit types: they hold bare bytes of the same size, or a stand-in (``stand_in``).
    """
    array = np.asarray(array, array.dtype.newbyteorder("="))
    if wanted.dtype.isbuiltin != 2:  # 2: a type of ml_dtypes
        return array
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.dtype.itemsize:
        return array.view(wanted.dtype)
    if array.dtype == stand_in(wanted.dtype):
        with np.errstate(all="ignore"):
            return array.astype(wanted.dtype)
    return array


def stand_in(dtype: np.dtype) -> np.dtype:
    """Return the type that replaces an ml_dtypes type in a .npz: float32 or int8, which hold all of its values."""
    return np.dtype(np.int8 if dtype.name.startswith(("int", "uint")) else np.float32)


# ---------------------------------------------------------------------------------------------
# pictures


def _picture(model: Model, parameter: Layer, path: str, shape: PartialShape, element_type: ElementType) -> np.ndarray:
    """Return a picture scaled to the height and width of the input, in its element type and layout.

    The values are 0 to 255, not normalised. Raises FeedError (IR601).
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        help = 'install it: pip install "irrun[image]"'
        raise bad_feed(model, parameter, f"cannot be read from {path}: pictures need pillow", help) from None
    order = _layout(shape)
    if order is None:
        message, help = (
            f"has shape {shape}, which no picture fits",
            "pictures fit [1,C,H,W] or [1,H,W,C] with C of 1 or 3",
        )
        raise bad_feed(model, parameter, message, help)
    holds_pixels = element_type.bits >= 16 if element_type.kind == "float" else element_type.bits >= 8
    if element_type.name in ("i8", "boolean", "string", "dynamic") or not holds_pixels:
        message = f"has type {element_type}, which cannot hold the values 0 to 255 of a picture"
        raise bad_feed(model, parameter, message, "pass an array instead")
    dims = dict(zip(order, shape))
    try:
        with Image.open(path) as opened:
            image = ImageOps.exif_transpose(opened).convert("L" if "C" not in dims or dims["C"] == 1 else "RGB")
        width, height = (dims[a].value or n for a, n in zip("WH", image.size))
        if (width, height) != image.size:
            image = image.resize((width, height), Image.Resampling.BILINEAR)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        why = _why(error) if isinstance(error, OSError) else str(error)
        raise bad_feed(model, parameter, f"cannot be read from {path}: {why}", "check the path") from None
    pixels = np.asarray(image, np.uint8).reshape(height, width, -1)
    axes = ["HWC".index(axis) for axis in order if axis in "HWC"]
    if "C" not in order:
        return pixels[:, :, 0].astype(element_type.dtype)
    pixels = pixels.transpose(axes).astype(element_type.dtype, order="C")
    return pixels[None] if "N" in order else pixels


def _layout(shape: PartialShape) -> str | None:
    """Return ``NCHW``, ``NHWC``, ``CHW``, ``HWC`` or ``HW``: C is the dim that is 1 or 3. None if no picture fits."""
    dims = shape.dims
    if dims is None or (len(dims) == 4 and not dims[0].fits(1)):
        return None
    if len(dims) == 2:
        return "HW"
    batch, rest = ("N", dims[1:]) if len(dims) == 4 else ("", dims)
    if len(rest) != 3:
        return None
    if rest[0].value in (1, 3):
        return batch + "CHW"
    return batch + "HWC" if rest[2].value in (1, 3) else None


# ---------------------------------------------------------------------------------------------
# literals


def _literal(model: Model, parameter: Layer, text: str, element_type: ElementType, *, free: bool) -> np.ndarray:
    """Return a JSON literal as an array of ``element_type``.

    With ``free``, the model does not declare a type, so that ``true`` is a boolean and ``"text"`` is a string. Raises
    FeedError (IR601) if the text is not JSON, or does not suit the element type.
    """
    try:
        items = np.array(json.loads(text), object)
    except (ValueError, RecursionError):
        help = "pass a .npy, .npz or picture, JSON ([1,2], 3.5, '\"text\"'), or random, zeros, ones or arange"
        raise bad_feed(
            model, parameter, f'cannot be read from "{text}", which is neither a file nor JSON', help
        ) from None
    kinds = {type(item) for item in items.flat}
    if free and kinds in ({bool}, {str}):
        element_type = ELEMENT_TYPES["string" if str in kinds else "boolean"]
    try:
        _require_elements(items, kinds, is_text=element_type.kind == "string")
        return _converted(items, element_type)
    except (ValueError, OverflowError) as error:
        raise bad_feed(model, parameter, f"has type {element_type}: {error}") from None


_JSON_NAMES: Final[dict[type, str]] = {dict: "an object", type(None): "null"}


def _require_elements(items: np.ndarray, kinds: set[type], *, is_text: bool) -> None:
    """Raise ValueError unless all items are numbers or booleans or, if ``is_text``, text. ``kinds`` are their types."""
    if list in kinds:
        raise ValueError("its inner lists have different lengths; pad them to one length")
    if not kinds <= {bool, int, float, str}:
        raise ValueError(f"it cannot hold {', '.join(sorted(_JSON_NAMES[t] for t in kinds & _JSON_NAMES.keys()))}")
    if kinds and is_text and str not in kinds:
        raise ValueError(f"{json.dumps(items.flat[0])} is not text; write text in double quotes")
    if str in kinds and not is_text:
        text = next(item for item in items.flat if isinstance(item, str))
        raise ValueError(f"{json.dumps(text)} is text; write numbers without quotes")


def _converted(items: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Return the items of a JSON literal in an element type.

    Raises ValueError for a number that an integer type cannot hold: it is neither rounded nor wrapped.
    """
    if element_type.kind == "string":
        return text_array(items.ravel().tolist(), items.shape)
    if element_type.kind == "boolean":
        for item in items.flat:
            if item not in (0, 1):
                raise ValueError(f"{item} is neither true nor false; write true (1) or false (0)")
        return items.astype(np.bool_)
    if element_type.is_integer:
        most = (1 << (element_type.bits - (element_type.kind == "int"))) - 1
        least = -most - 1 if element_type.kind == "int" else 0
        for item in items.flat:
            if isinstance(item, float) or not least <= item <= most:
                raise ValueError(f"{item} is not an integer from {least} to {most}")
        return items.astype(np.uint64 if element_type.kind == "uint" else np.int64).astype(element_type.dtype)
    with np.errstate(all="ignore"):
        return items.astype(np.float64).astype(element_type.dtype)
