"""Read the inputs of a model from array files (.npy, .npz)."""

from __future__ import annotations

import math
import os
import re
import zipfile
from pathlib import Path
from typing import IO, Final

import numpy as np

from irrun.base.text import human
from irrun.diagnostics import FeedError
from irrun.ir.parse import require_file
from irrun.ir.recognition import kind_of
from irrun.model import Layer, Model
from irrun.model.lookup import bad_feed
from irrun.types import ElementType

__all__ = ["HEAD", "PICTURE", "native", "read_array", "refuse_foreign", "stand_in", "why"]

PICTURE: Final = re.compile(r".+\.(png|jpe?g|bmp|gif|webp|tiff?|p[bgpn]m)", re.IGNORECASE | re.DOTALL)
"""The names of files that are pictures."""


def read_array(model: Model, number: int, path: str, key: str | None, max_memory: int) -> np.ndarray:
    """Return the array for input ``number`` from a .npy or .npz file, of at most ``max_memory`` bytes.

    ``key`` names an array of a .npz; None takes the one that has a name of the input, or the only one. Raises FeedError
    (IR601).
    """
    parameter = model.parameters[number]
    try:
        require_file(Path(path))
        with open(path, "rb") as file:  # np.load leaves a broken file open if it opens the file itself
            refuse_foreign(model, parameter, path, file.read(HEAD))
            is_archive = zipfile.is_zipfile(file)
            if is_archive != path.lower().endswith(".npz"):
                raise ValueError(f"the file is a {'.npz' if is_archive else '.npy'}")
            file.seek(0)
            if not is_archive:
                _require_size(file, os.fstat(file.fileno()).st_size, max_memory)
                file.seek(0)
                return np.load(file, allow_pickle=False)
            loaded = np.load(file, allow_pickle=False)
            key = _key(model, parameter, path, loaded.files, key)
            member = loaded.zip.getinfo(key if key in loaded.zip.namelist() else f"{key}.npy")
            with loaded.zip.open(member) as stream:
                _require_size(stream, member.file_size, max_memory)
            return loaded[key]
    except OSError as error:
        raise bad_feed(model, parameter, f"cannot be read from {path}: {why(error)}", "check the path") from None
    except FeedError:
        raise
    except MemoryError:
        help = "the header of the array asks for more memory than there is; write it again with numpy.save"
        raise bad_feed(model, parameter, f"cannot be read from {path}: out of memory", help) from None
    except Exception as error:  # numpy, zipfile and the decompressors raise whatever a corrupt file leads them to
        raise bad_feed(model, parameter, f"cannot be read from {path}: {error}", "write it with numpy.save") from None


HEAD: Final = 4096
"""The number of bytes of a file that are looked at to recognise it."""


def refuse_foreign(model: Model, parameter: Layer, path: str, head: bytes) -> None:
    """Raise FeedError (IR601) if the first bytes of a file are those of a format that its name does not tell."""
    known = kind_of(head, path)
    if known is None or head.startswith(b"PK") or Path(path).suffix.lower() in known[0]:
        return
    if "picture" in known[0] and PICTURE.fullmatch(path):
        return
    help = f"rename it to {Path(path).with_suffix('.npy')}" if "(.npy)" in known[0] else known[1]
    raise bad_feed(model, parameter, f"cannot be read from {path}: the file {known[0]}", help)


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


def why(error: OSError) -> str:
    """Return the reason of an OSError, without its path and number."""
    return (error.strerror or str(error)).lower()


def native(array: np.ndarray, wanted: ElementType) -> np.ndarray:
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
