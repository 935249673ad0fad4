"""Values that wait on disk, so that memory is needed for one pair at a time, and for one engine at a time."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from irrun.diagnostics import WriteError
from irrun.engines import Value
from irrun.engines.values import read_tensor, write_tensor
from irrun.files import writing

__all__ = ["Kept", "Shelf"]


class Kept:
    """A value on a shelf. ``size`` is the number of bytes that it takes there."""

    def __init__(self, shelf: Shelf, value: Value | None, record: Mapping[str, Any], at: int, size: int) -> None:
        self._shelf, self._value, self._record, self._at, self.size = shelf, value, record, at, size

    def array(self) -> np.ndarray:
        """Return the value. Raises ValueError if the engine has described it wrongly."""
        if self._value is not None:
            return self._value.array()
        return read_tensor(self._record or self._shelf.small(self._at, self.size))

    def take(self) -> np.ndarray:
        """Return the value, and remove it from the shelf."""
        try:
            return self.array()
        finally:
            self.drop()

    def drop(self) -> None:
        """Remove the value from the shelf."""
        with suppress(KeyError):
            Path(self._record["file"]).unlink(missing_ok=True)
        self._shelf.forget(self.size)


class Shelf:
    """Values in a folder. A large one is a file; all small ones, of which there may be millions, are in one file.

    ``size`` is the number of bytes of the values that are there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "shelf"
        self.folder.mkdir()
        self.size = 0
        self._file = (self.folder / "small").open("w+b")
        self._written = self._kept = self._number = 0

    def keep(self, value: Value) -> Kept:
        """Keep a value that an engine has computed, and take its file from the engine."""
        if value.record is None:
            return self._counted(Kept(self, value, {}, 0, 0))
        if "file" not in value.record:
            return self._keep_small(value.record)
        source, target = Path(value.record["file"]), self._new()
        try:
            size = source.stat().st_size
            with writing(target):
                shutil.move(source, target)
        except WriteError:
            raise
        except OSError:  # the engine has described it wrongly; so says whoever reads it
            return self._counted(Kept(self, value, {}, 0, 0))
        return self._counted(Kept(self, None, {**value.record, "file": str(target)}, 0, size))

    def keep_array(self, array: np.ndarray, type: str | None = None) -> Kept:
        """Keep an array of an element type, by default the one that computes in its dtype."""
        target = self._new()
        record = write_tensor(array, type, target)
        if "file" not in record:
            return self._keep_small(record)
        return self._counted(Kept(self, None, record, 0, target.stat().st_size))

    def small(self, at: int, size: int) -> Mapping[str, Any]:
        """Return the record of a small value."""
        with writing(self.folder):  # what is still in the buffer
            self._file.seek(at)
        return json.loads(self._file.read(size))

    def forget(self, size: int) -> None:
        """Count a value as removed. The file of the small ones is emptied when there is none left."""
        self.size -= size
        self._kept -= 1
        if not self._kept:
            with writing(self.folder):
                self._file.seek(0)
                self._file.truncate()
            self._written = 0

    def close(self) -> None:
        """Close the file of the small values. The folder remains."""
        with suppress(OSError):  # what is still in the buffer does not fit on the disk
            self._file.close()

    def _new(self) -> Path:
        self._number += 1
        return self.folder / f"{self._number}.bin"

    def _keep_small(self, record: Mapping[str, Any]) -> Kept:
        data, at = json.dumps(record).encode(), self._written
        with writing(self.folder):
            self._file.seek(at)
            self._file.write(data)
        self._written += len(data)
        return self._counted(Kept(self, None, {}, at, len(data)))

    def _counted(self, kept: Kept) -> Kept:
        self.size += kept.size
        self._kept += 1
        return kept
