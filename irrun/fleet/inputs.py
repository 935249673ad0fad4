"""The inputs of a batch: files that hold one input each, or stacks with one input in each row."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from irrun.arrays.pictures import AS_THEY_ARE, Pictures, read_picture
from irrun.arrays.reading import PICTURE, native, read_array
from irrun.diagnostics import FeedError, diagnostic
from irrun.ir.parse import require_file
from irrun.model import Model
from irrun.model.lookup import bad_feed
from irrun.running.generate import declared

__all__ = ["Files", "Inputs", "Stack", "files_of", "stack_of", "zarr_package"]


class Inputs(Protocol):
    """Inputs of a model, by their number. ``part`` makes a smaller one, for a task."""

    @property
    def start(self) -> int:
        """The number of the first input."""
        ...

    def __len__(self) -> int: ...

    def name(self, number: int) -> str:
        """Return what a message calls an input: its path, or its path and row."""
        ...

    def feeds(self, model: Model, number: int, max_memory: int) -> dict[int, np.ndarray]:
        """Return the arrays of an input, by the position of the Parameter. Raises FeedError (IR601)."""
        ...

    def part(self, start: int, stop: int) -> Inputs: ...


# ---------------------------------------------------------------------------------------------
# files


@dataclass(frozen=True, slots=True)
class Files:
    """Files that hold one input each: array files and pictures. Results have the ``names``, which may hold slashes."""

    paths: tuple[str, ...]
    names: tuple[str, ...]
    start: int = 0
    pictures: Pictures = AS_THEY_ARE

    def __len__(self) -> int:
        return len(self.paths)

    def name(self, number: int) -> str:
        return self.paths[number - self.start]

    def part(self, start: int, stop: int) -> Files:
        own = slice(start - self.start, stop - self.start)
        return Files(self.paths[own], self.names[own], start, self.pictures)

    def feeds(self, model: Model, number: int, max_memory: int) -> dict[int, np.ndarray]:
        """Return the arrays of a file: a .npz may hold several inputs by name, other files hold one.

        An array of one dim less than its input takes gets a first dim of 1. Raises FeedError (IR601).
        """
        path = self.paths[number - self.start]
        if not model.parameters:
            message = f"the model takes no input, so that {path} has no use"
            raise FeedError(diagnostic("IR601", message, file=model.source.path))
        if path.lower().endswith(".npz"):
            return {n: _whole(model, n, read_array(model, n, path, None, max_memory)) for n in _numbers(model)}
        if path.lower().endswith(".npy"):
            return {0: _whole(model, 0, read_array(model, 0, path, None, max_memory))}
        if PICTURE.fullmatch(path):
            element_type = declared(model, model.parameters[0])[0]
            return {0: read_picture(model, 0, path, element_type, self.pictures)[0]}
        message = f"cannot be read from {path}: its name has no ending of an array file or picture"
        raise bad_feed(model, model.parameters[0], message, "pass .npy, .npz or picture files")


def _numbers(model: Model) -> range:
    return range(len(model.parameters))


def _whole(model: Model, number: int, array: np.ndarray) -> np.ndarray:
    """Return an array in the type of an input, with a first dim of 1 if that is what it lacks."""
    element_type, shape = declared(model, model.parameters[number])
    array = native(array, element_type)
    if shape.dims is not None and array.ndim == len(shape.dims) - 1 and shape.dims[0].fits(1):
        return array[None]
    return array


_ENDINGS: Final = (".npy", ".npz")


def files_of(arguments: Sequence[str], out: Path) -> tuple[Files, int]:
    """Return the inputs that arguments name, and how many files of their folders are no inputs.

    A folder stands for its array files and pictures, with those of its sub-folders, sorted by name. Hidden files and
    what lies in ``out`` are left out. Raises FeedError (IR601) if two inputs would have results of the same name.
    """
    paths: list[str] = []
    names: dict[str, str] = {}
    others = 0
    for argument in arguments:
        if os.path.isdir(argument):
            for path in _walk(argument, os.path.abspath(out)):
                if path.lower().endswith(_ENDINGS) or PICTURE.fullmatch(path):
                    paths.append(path)
                    _claim(names, os.path.relpath(path, argument), path)
                else:
                    others += 1
        else:
            paths.append(argument)
            _claim(names, os.path.basename(argument), argument)
    return Files(tuple(paths), tuple(names)), others


def _walk(folder: str, out: str) -> Iterator[str]:
    """Yield the files of a folder and of its sub-folders, sorted, without hidden ones and the folder ``out``."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(f for f in folders if f[0] != "." and os.path.abspath(os.path.join(place, f)) != out)
        yield from (os.path.join(place, file) for file in sorted(files) if file[0] != ".")


def _claim(names: dict[str, str], name: str, path: str) -> None:
    name = Path(name).as_posix()
    if name in names:
        message = f"{names[name]} and {path} would have results of the same name"
        help = "pass each file once; for files of the same name, pass the folder above them"
        raise FeedError(diagnostic("IR601", message, help=help))
    names[name] = path


# ---------------------------------------------------------------------------------------------
# stacks


@dataclass(frozen=True, slots=True)
class _Rows:
    """An array with one input in each row: memory-mapped from ``offset`` in a file, or a Zarr array (offset -1)."""

    path: str
    shape: tuple[int, ...]
    dtype: str = ""
    offset: int = -1
    fortran: bool = False
    key: str = ""
    keeps: bool = True
    """Whether a row keeps a first dim of 1, because the input has as many dims as the stack."""

    def open(self) -> Any:
        if self.offset < 0:
            found: Any = zarr_package().open(self.path, mode="r")
            return found[self.key] if self.key else found
        order = "F" if self.fortran else "C"
        return np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape, order)


@dataclass(frozen=True, slots=True)
class Stack:
    """Arrays with one input in each row, by the position of the Parameter. ``path`` is that of the user."""

    path: str
    arrays: Mapping[int, _Rows]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    def name(self, number: int) -> str:
        return f"{self.path}[{number}]"

    def part(self, start: int, stop: int) -> Stack:
        return replace(self, start=start, stop=stop)

    def feeds(self, model: Model, number: int, max_memory: int) -> dict[int, np.ndarray]:
        """Return the rows of an input. Raises FeedError (IR601) if a row cannot be read."""
        feeds: dict[int, np.ndarray] = {}
        for at, rows in self.arrays.items():
            parameter = model.parameters[at]
            try:
                row = np.array(_opened(rows)[number : number + 1])
            except Exception as error:  # whatever a damaged chunk of a Zarr array leads its decoder to
                message = f"cannot be read from {self.name(number)}: {error}"
                raise bad_feed(model, parameter, message, "write the array again") from None
            feeds[at] = native(row if rows.keeps else row[0], declared(model, parameter)[0])
        return feeds


_open: dict[_Rows, Any] = {}
"""The stacks that this process has opened."""


def _opened(rows: _Rows) -> Any:
    if rows not in _open:
        _open[rows] = rows.open()
    return _open[rows]


def stack_of(path: str, model: Model, scratch: Path) -> Stack:
    """Return the inputs in the rows of a .npy, .npz or Zarr array, or of a Zarr group with an array for each input.

    The compressed arrays of a .npz are unpacked into the folder ``scratch``. Raises FeedError (IR601) if the file
    cannot be read or does not fit the model, and ModuleNotFoundError if it needs zarr.
    """
    try:
        if os.path.isdir(path):
            arrays = _zarr_arrays(path)
        else:
            require_file(Path(path))
            arrays = _npz_arrays(path, scratch) if zipfile.is_zipfile(path) else {"": _npy_rows(path)}
    except FeedError:
        raise
    except ModuleNotFoundError:
        raise
    except Exception as error:  # numpy, zipfile and zarr raise whatever a corrupt file leads them to
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise _unusable(path, f"cannot be read: {reason}", "check the path, or write it with numpy.save") from None
    by_position = dict(_placed(path, arrays, model))
    lengths = {rows.shape[0] for rows in by_position.values()}
    if len(lengths) != 1:
        raise _unusable(path, f"holds arrays of {' and '.join(map(str, sorted(lengths)))} rows", "give all as many")
    return Stack(path, by_position, 0, lengths.pop())


def _unusable(path: str, message: str, help: str) -> FeedError:
    return FeedError(diagnostic("IR601", f"the stack {path} {message}", help=help))


def _placed(path: str, arrays: Mapping[str, _Rows], model: Model) -> Iterator[tuple[int, _Rows]]:
    """Yield the position of the input that each array is for, and the array. Raises FeedError (IR601)."""
    names = ", ".join(f'"{p.name}"' for p in model.parameters) or "none"
    for key, rows in arrays.items():
        number = model.input_position(key) if key else 0
        if number is None and len(arrays) == len(model.parameters) == 1:
            number = 0
        if number is None or number >= len(model.parameters):
            raise _unusable(path, f'holds an array "{key}", but the model has no such input', f"its inputs are {names}")
        parameter = model.parameters[number]
        dims = declared(model, parameter)[1].dims
        if not rows.shape or np.dtype(rows.dtype or "f4").hasobject:
            raise _unusable(path, "holds no rows of numbers", "write an array with one input in each row")
        if dims is None or (len(rows.shape) == len(dims) and dims[0].fits(1)):
            yield number, rows
        elif len(rows.shape) == len(dims) + 1:
            yield number, replace(rows, keeps=False)
        else:
            shape = f"[{','.join(map(str, rows.shape))}]"
            message = f'has shape {shape}, whose rows do not fit the input "{parameter.name}"'
            wanted = declared(model, parameter)[1]
            raise _unusable(path, message, f"the input takes {wanted}: stack inputs along a first axis")
    missing = [p.name for n, p in enumerate(model.parameters) if not any(_is(model, key, n) for key in arrays)]
    if missing and len(model.parameters) > 1:
        raise _unusable(path, f'holds no array for the input "{missing[0]}"', f"the inputs are {names}")


def _is(model: Model, key: str, number: int) -> bool:
    return (model.input_position(key) if key else 0) == number


def _npy_rows(path: str, offset: int = 0) -> _Rows:
    """Return the array of a .npy that begins at ``offset`` of a file. Raises ValueError."""
    with open(path, "rb") as file:
        file.seek(offset)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        rows = _Rows(path, shape, np.lib.format.dtype_to_descr(dtype), file.tell(), fortran)  # type: ignore[arg-type]
    needed = rows.offset + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if os.path.getsize(path) < needed:
        raise ValueError(f"its header declares more bytes than it holds: {needed:,}")
    return rows


_LOCAL: Final = struct.Struct("<26xHH")
"""The end of the header before a member of a .zip: the lengths of its name and of its extra field."""
_BLOCK_BYTES: Final = 1 << 20


def _npz_arrays(path: str, scratch: Path) -> dict[str, _Rows]:
    """Return the arrays of a .npz. An array that is stored as it is stays where it is."""
    arrays: dict[str, _Rows] = {}
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for number, member in enumerate(archive.infolist()):
            key = member.filename.removesuffix(".npy")
            if member.compress_type == zipfile.ZIP_STORED:
                file.seek(member.header_offset)
                name, extra = _LOCAL.unpack(file.read(_LOCAL.size))
                arrays[key] = _npy_rows(path, member.header_offset + _LOCAL.size + name + extra)
                continue
            unpacked = scratch / f"input-{number}.npy"
            with archive.open(member) as source, unpacked.open("wb") as target:
                while block := source.read(_BLOCK_BYTES):
                    target.write(block)
            arrays[key] = _npy_rows(str(unpacked))
    return arrays


def zarr_package() -> Any:
    """Return the package zarr, imported when it is first needed. Raises ModuleNotFoundError."""
    import zarr

    return zarr


def _zarr_arrays(path: str) -> dict[str, _Rows]:
    zarr = zarr_package()
    found: Any = zarr.open(path, mode="r")
    if isinstance(found, zarr.Array):
        return {"": _Rows(path, found.shape, found.dtype.str)}
    pairs: Iterable[tuple[str, Any]] = found.arrays()
    return {key: _Rows(path, array.shape, array.dtype.str, key=key) for key, array in sorted(pairs)}
