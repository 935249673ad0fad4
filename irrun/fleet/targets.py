"""Where a batch writes: a folder with a file for each input, or one file with a row for each.

Each worker writes its own results, so that the memory of the parent does not grow with them. Files are written under a
temporary name and then renamed: after a kill, every result that exists is complete.
"""

from __future__ import annotations

import os
import re
import shutil
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from irrun.arrays.writing import write_npy, write_npz
from irrun.diagnostics import Diagnostic, diagnostic
from irrun.files import NewFile, writing
from irrun.fleet.inputs import Files, Inputs, zarr_package
from irrun.fleet.session import Result
from irrun.running.dump import storable

__all__ = ["Bad", "Folder", "Stacked", "Target", "target_of"]

Bad = tuple[int, tuple[Diagnostic, ...]]
"""The number of an input without a result, and why it has none."""


class Target(Protocol):
    """Where the results of a batch go."""

    @property
    def work(self) -> Path:
        """The folder for what is not part of the results."""
        ...

    def missing(self, inputs: Inputs) -> np.ndarray:
        """Return whether the result of each input is missing, as bool [n]."""
        ...

    def lacks(self, inputs: Inputs, number: int) -> bool:
        """Return whether the result of one input is missing. A worker asks, before it writes."""
        ...

    def write(self, inputs: Inputs, start: int, results: Sequence[Result | None]) -> list[Bad]:
        """Write the results of inputs from ``start`` on, None for those that are not wanted. Return those without."""
        ...

    def finish(self, count: int) -> list[Bad]:
        """Complete the output of ``count`` inputs, and return inputs whose results do not fit the others."""
        ...

    def discard(self, inputs: Inputs) -> None:
        """Remove earlier results."""
        ...


def _failed(result: Result) -> bool:
    return any(isinstance(item, Diagnostic) for item in result)


def target_of(out: str, names: Sequence[str]) -> Folder | Stacked:
    """Return the target that the ending of a path means. ``names`` are those of the model's outputs."""
    path = Path(out)
    if path.suffix.lower() in (".npy", ".npz", ".zarr"):
        return Stacked(path, path.with_name(f".{path.name}.irrun"), tuple(names))
    return Folder(path, path / ".irrun", tuple(names))


# ---------------------------------------------------------------------------------------------
# a folder


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder with a file for each input: .npy if the model has one output, .npz if it has several.

    The result of a .npz is a .npz. The file has the name of the input, and one more ending if that is another one.
    """

    path: Path
    work: Path
    names: tuple[str, ...]

    def _file(self, inputs: Inputs, number: int) -> str:
        """Return the path of a result within the folder."""
        if not isinstance(inputs, Files):
            return f"{number:06}{'.npy' if len(self.names) == 1 else '.npz'}"
        name = inputs.names[number - inputs.start]
        ending = ".npz" if len(self.names) != 1 or name.lower().endswith(".npz") else ".npy"
        return name if name.endswith(ending) else name + ending

    def missing(self, inputs: Inputs) -> np.ndarray:
        present = set(self._present())
        return np.array([self._file(inputs, n) not in present for n in range(len(inputs))], bool)

    def _present(self) -> Iterator[str]:
        for place, folders, files in os.walk(self.path):
            folders[:] = [folder for folder in folders if folder != self.work.name]
            inner = os.path.relpath(place, self.path)
            yield from files if inner == "." else (Path(inner, file).as_posix() for file in files)

    def lacks(self, inputs: Inputs, number: int) -> bool:
        return not (self.path / self._file(inputs, number)).exists()

    def write(self, inputs: Inputs, start: int, results: Sequence[Result | None]) -> list[Bad]:
        bad: list[Bad] = []
        for number, result in enumerate(results, start):
            if result is None:
                continue
            if _failed(result):
                bad.append((number, result))  # type: ignore[arg-type]
                continue
            path = self.path / self._file(inputs, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            with NewFile(path, swept=True) as new:
                if path.suffix == ".npy":
                    write_npy(new.file, result[0])  # type: ignore[arg-type]
                else:
                    write_npz(new.file, list(zip(self.names, result)))  # type: ignore[arg-type]
                new.finish()
        return bad

    def finish(self, count: int) -> list[Bad]:
        return []

    def discard(self, inputs: Inputs) -> None:
        for number in range(len(inputs)):
            (self.path / self._file(inputs, number)).unlink(missing_ok=True)


# ---------------------------------------------------------------------------------------------
# a stack

_PART: Final = re.compile(r"part-(\d+)-(\d+)\.npz")
_BAD: Final = "-bad"
"""The key of the numbers of inputs without a result. Outputs have their positions as keys."""
_ASIDE: Final = "zarr"
_COMPLETE: Final = "complete"
"""The file that says that the output holds all results. The parts are then removed."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """A .npy, .npz or Zarr array with a row for each input. Zarr and .npz hold several outputs by name.

    Workers write parts into the folder ``work``; the parent makes one file of them when all are there. The rows of
    inputs without a result are NaN, or 0 in integers.
    """

    path: Path
    work: Path
    names: tuple[str, ...]

    def _parts(self) -> list[_Part]:
        """Return the first number of each part, the one after its last, and its path, without parts of parts."""
        parts: list[_Part] = []
        for start, last, path in sorted((start, -stop, path) for start, stop, path in self._all_parts()):
            if not parts or -last > parts[-1][1]:
                parts.append((start, -last, path))
        return parts

    def _all_parts(self) -> Iterator[_Part]:
        for path in self.work.iterdir():
            if match := _PART.fullmatch(path.name):
                yield int(match[1]), int(match[2]), path

    def missing(self, inputs: Inputs) -> np.ndarray:
        missing = np.ones(len(inputs), bool)
        parts = self._parts()
        if self.path.exists() and (self.work / _COMPLETE).exists():
            missing[:] = False
        for start, stop, path in parts:
            if self._bad(path).size:
                path.unlink()
            else:
                missing[start:stop] = False
        return missing

    def lacks(self, inputs: Inputs, number: int) -> bool:
        return True

    def write(self, inputs: Inputs, start: int, results: Sequence[Result | None]) -> list[Bad]:
        bad: list[Bad] = []
        rows: list[tuple[np.ndarray, ...]] = []
        for number, result in enumerate(results, start):
            assert result is not None, "parts are written as a whole"
            if _failed(result):
                bad.append((number, result))  # type: ignore[arg-type]
                continue
            row = tuple(_row(storable(np.asarray(array))) for array in result)  # type: ignore[arg-type]
            if rows and _kinds(row) != _kinds(rows[0]):
                bad.append((number, (_misfit(_kinds(row), _kinds(rows[0])),)))
                continue
            rows.append(row)
        arrays = [(str(at), np.stack([row[at] for row in rows])) for at in range(len(self.names)) if rows]
        with NewFile(self.work / f"part-{start}-{start + len(results)}.npz", swept=True) as new:
            write_npz(new.file, [*arrays, (_BAD, np.array([number for number, _ in bad], np.int64))])
            new.finish()
        return bad

    def finish(self, count: int) -> list[Bad]:
        """Make the output of the parts. Parts are kept while inputs lack a result, so that these can be done later."""
        parts = self._parts()
        if not parts:
            return []
        kinds, misfits = self._kinds(parts)
        fitting = [part for part in parts if part not in misfits]
        if kinds:
            writer = {".npy": self._npy, ".npz": self._npz, ".zarr": self._zarr}[self.path.suffix.lower()]
            writer(count, kinds, fitting)
        complete = fitting == parts and not any(self._bad(path).size for _, _, path in parts)
        if complete:
            (self.work / _COMPLETE).touch()
        for part in list(self._all_parts()):
            if complete or part in misfits:
                part[2].unlink()
        return [(number, (misfits[part],)) for part in misfits for number in range(part[0], part[1])]

    def _bad(self, path: Path) -> np.ndarray:
        """Return the numbers of the inputs of a part that have no result."""
        with np.load(path, allow_pickle=False) as part:
            return part[_BAD]

    def _kinds(self, parts: Sequence[_Part]) -> tuple[_Kinds, dict[_Part, Diagnostic]]:
        """Return the shapes and types of the first row, and the parts whose rows differ from it."""
        kinds: _Kinds = []
        misfits: dict[_Part, Diagnostic] = {}
        for place in parts:
            with np.load(place[2], allow_pickle=False) as part:
                own = [(part[str(at)].shape[1:], part[str(at)].dtype) for at in range(len(self.names)) if "0" in part]
            kinds = kinds or own
            if own and [(shape, d.kind) for shape, d in own] != [(shape, d.kind) for shape, d in kinds]:
                misfits[place] = _misfit(own, kinds)
            elif own:  # texts may be of different widths
                kinds = [(shape, np.promote_types(a, b)) for (shape, a), (_, b) in zip(kinds, own)]
        return kinds, misfits

    def _rows(self, at: int, kinds: _Kinds, parts: Sequence[_Part], count: int) -> Iterator[np.ndarray]:
        """Yield the rows of an output from one part after the other, with filled rows for inputs without a result."""
        shape, dtype = kinds[at]
        reached = 0
        for start, stop, path in parts:
            yield _filled((start - reached, *shape), dtype)
            with np.load(path, allow_pickle=False) as part:
                rows = _filled((stop - start, *shape), dtype)
                if str(at) in part:
                    rows[np.isin(np.arange(start, stop), part[_BAD], invert=True)] = part[str(at)]
            yield rows
            reached = stop
        yield _filled((count - reached, *shape), dtype)

    def _npy(self, count: int, kinds: _Kinds, parts: Sequence[_Part]) -> None:
        with NewFile(self.path) as new:
            _write_stack(new.file, count, kinds[0], self._rows(0, kinds, parts, count))
            new.finish()

    def _npz(self, count: int, kinds: _Kinds, parts: Sequence[_Part]) -> None:
        with NewFile(self.path) as new:
            with zipfile.ZipFile(new.file, "w", allowZip64=True) as archive:
                for at, name in enumerate(self.names):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_stack(member, count, kinds[at], self._rows(at, kinds, parts, count))
            new.finish()

    def _zarr(self, count: int, kinds: _Kinds, parts: Sequence[_Part]) -> None:
        """Write a Zarr array, or a group of them for several outputs, aside, and rename its folder."""
        with writing(self.path):
            self._zarr_aside(count, kinds, parts)
        if self.path.is_dir():
            shutil.rmtree(self.path)
        (self.work / _ASIDE).replace(self.path)

    def _zarr_aside(self, count: int, kinds: _Kinds, parts: Sequence[_Part]) -> None:
        zarr = zarr_package()
        aside = self.work / _ASIDE
        shutil.rmtree(aside, ignore_errors=True)
        group: Any = None if len(self.names) == 1 else zarr.open_group(str(aside), mode="w")
        for at, (shape, dtype) in enumerate(kinds):
            size = max(1, int(np.prod(shape, dtype=object)) * dtype.itemsize)
            chunk = max(1, min(count, _CHUNK // size))
            chunks = (chunk, *(n or 1 for n in shape))
            how: dict[str, Any] = {"shape": (count, *shape), "dtype": dtype, "chunks": chunks}
            array = zarr.create_array(str(aside), **how) if group is None else group.create_array(self.names[at], **how)
            kept, reached = [_filled((0, *shape), dtype)], 0
            for rows in self._rows(at, kinds, parts, count):
                kept.append(rows)
                if (ready := sum(map(len, kept)) // chunk * chunk) or not len(rows):
                    whole = np.concatenate(kept)
                    array[reached : reached + ready] = whole[:ready]
                    kept, reached = [whole[ready:]], reached + ready
            array[reached:count] = np.concatenate(kept)

    def discard(self, inputs: Inputs) -> None:
        (self.work / _COMPLETE).unlink(missing_ok=True)
        for _, _, path in list(self._all_parts()):
            path.unlink()
        if self.path.is_dir():
            shutil.rmtree(self.path)
        else:
            self.path.unlink(missing_ok=True)


_CHUNK: Final = 1 << 20
"""The most bytes of a chunk of a Zarr array, unless one row takes more."""

_Part = tuple[int, int, Path]
"""The first number of a part, the one after its last, and its path."""
_Kinds = list[tuple[tuple[int, ...], np.dtype]]
"""The shape and type of a row of each output."""


def _row(array: np.ndarray) -> np.ndarray:
    """Return an output as a row of a stack: without its first dim if that is 1."""
    return array[0] if array.shape[:1] == (1,) else array


def _kinds(row: Sequence[np.ndarray]) -> list[tuple[tuple[int, ...], str]]:
    return [(array.shape, array.dtype.kind) for array in row]


def _misfit(own: Sequence[tuple[Any, Any]], others: Sequence[tuple[Any, Any]]) -> Diagnostic:
    one, other = (" and ".join(f"[{','.join(map(str, shape))}]" for shape, _ in kinds) for kinds in (own, others))
    message = f"its outputs have the shape {one}, and those before it {other}"
    return diagnostic("IR601", message, help="write to a folder instead, where shapes may differ")


def _filled(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return np.full(shape, np.nan if dtype.kind == "f" else np.zeros((), dtype), dtype)


def _write_stack(file: Any, count: int, kind: tuple[tuple[int, ...], np.dtype], rows: Iterator[np.ndarray]) -> None:
    """Write a .npy with ``count`` rows, one piece after the other."""
    shape, dtype = kind
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count, *shape)}
    np.lib.format.write_array_header_2_0(file, header)
    for piece in rows:
        file.write(np.ascontiguousarray(piece).tobytes())
