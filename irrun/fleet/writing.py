"""Write arrays to .npy and .npz files that hold the same bytes whenever they are written."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from typing import BinaryIO, Final

import numpy as np

from irrun.model import Model
from irrun.running.dump import storable

__all__ = ["output_names", "write_npy", "write_npz"]


def output_names(model: Model) -> list[str]:
    """Return a name for each output: the first of its own that no output before it has, or else ``output N``."""
    names: list[str] = []
    for result in model.results:
        own = [n for n in model.result_names(result) if n not in names] or [f"output {len(names)}"]
        names.append(own[0])
    return names


def write_npy(file: BinaryIO, array: np.ndarray) -> None:
    """Write a .npy. Values of types that it cannot hold are written as ``storable`` says."""
    np.lib.format.write_array(file, storable(np.asarray(array)), allow_pickle=False)


def write_npz(file: BinaryIO, arrays: Iterable[tuple[str, np.ndarray]]) -> list[int]:
    """Write a .npz with each array under its name, and return the positions of those saved as a stand-in type.

    It holds no times, so that equal arrays give equal bytes. numpy.savez is not used because it cannot save an array
    named ``file``: names are its keyword arguments.
    """
    changed: list[int] = []
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for number, (name, array) in enumerate(arrays):
            if array.dtype.isbuiltin == 2 or array.dtype == object:
                array = storable(array)
                if array.dtype.kind != "U":
                    changed.append(number)
            with archive.open(f"{_key(name)}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return changed


_LONGEST: Final = 60_000
"""The most bytes of a name in a .npz: a .zip holds names of 65,535 bytes."""


def _key(name: str) -> str:
    """Return the key of an output in a .npz: its name or, if that is too long, its beginning and a hash of it."""
    data = name.encode()
    if len(data) <= _LONGEST:
        return name
    return f"{data[:_LONGEST].decode(errors='ignore')}…{hashlib.sha256(data).hexdigest()[:16]}"
