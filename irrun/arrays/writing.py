"""Write arrays to .npy and .npz files that hold the same bytes whenever they are written."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterable
from typing import IO, Final

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


def write_npy(file: IO[bytes], array: np.ndarray) -> bool:
    """Write a .npy, and return whether the array is saved as a stand-in type, as ``storable`` says."""
    array = np.asarray(array)
    stored = storable(array)
    np.lib.format.write_array(file, stored, allow_pickle=False)
    return stored is not array and stored.dtype.kind != "U"


def write_npz(file: IO[bytes], arrays: Iterable[tuple[str, np.ndarray]]) -> list[int]:
    """Write a .npz with each array under its name, and return the positions of those saved as a stand-in type.

    It holds no times, so that equal arrays give equal bytes. numpy.savez is not used because it cannot save an array
    named ``file``: names are its keyword arguments.
    """
    changed: list[int] = []
    with zipfile.ZipFile(file, "w", allowZip64=True) as archive:
        for number, (name, array) in enumerate(arrays):
            with archive.open(f"{_key(name)}.npy", "w", force_zip64=True) as member:
                if write_npy(member, array):
                    changed.append(number)
    return changed


_MAX_NAME_BYTES: Final = 60_000
"""The most bytes of a name in a .npz: a .zip holds names of 65,535 bytes."""


def _key(name: str) -> str:
    """Return the key of an output in a .npz: its name or, if that is too long, its beginning and a hash of it."""
    data = name.encode()
    if len(data) <= _MAX_NAME_BYTES:
        return name
    return f"{data[:_MAX_NAME_BYTES].decode(errors='ignore')}…{hashlib.sha256(data).hexdigest()[:16]}"
