"""A hook that writes every intermediate value of a run to a folder: one ``.npy`` for each, and an ``index.json``."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun.files import NewFile, sweep, write_file
from irrun.model import Layer, Port
from irrun.model.weights import pack
from irrun.running.statistics import blocks, numbers, statistics
from irrun.types import ELEMENT_TYPES, ElementType, fixed_width

if TYPE_CHECKING:
    from irrun.planning.steps import Step

__all__ = ["Dump"]


class Dump:
    """A hook that writes each output of each layer into ``folder`` as soon as it is computed. It keeps no array.

    Use it as ``with Dump(folder) as dump: executable(feeds, hooks=[dump])``. The end of the ``with`` block writes the
    index, also when the run failed. A layer in a body is named ``loop/layer``, and its rows have the number of the
    iteration, from 0 on.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.rows: list[dict[str, Any]] = []
        self._path: list[str] = []
        self._visits: Counter[tuple[str, int]] = Counter()

    def __enter__(self) -> Dump:
        self.folder.mkdir(parents=True, exist_ok=True)
        sweep(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        self.write_index()

    def write_index(self) -> None:
        """Write the index of the values so far."""
        rows = ",\n".join(json.dumps(row, allow_nan=False) for row in self.rows)
        write_file(self.folder / "index.json", f"[\n{rows}\n]\n".encode("ascii"), swept=True)

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        self._path.append(_layer_name(step.layer))

    def after(self, step: Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        self._path.pop()
        for port, array in zip(step.layer.outputs, outputs):
            self.add(step.layer, port, array)

    def add(self, layer: Layer, port: Port, array: np.ndarray) -> None:
        """Write one array to a ``.npy`` file and add its row to the index."""
        array = np.asarray(array)
        name = "/".join([*self._path, _layer_name(layer)])
        row: dict[str, Any] = {"layer": name, "id": layer.id, "operation": layer.type, "port": port.id}
        if self._path:
            row["iteration"] = self._visits[name, port.id]
            self._visits[name, port.id] += 1
        plain = re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII)[:80]
        file = f"{len(self.rows):06}_{plain}_{port.id}.npy"
        _write(self.folder / file, array)
        known = port.type if port.type is not None and port.type.dtype == array.dtype else ElementType.of(array.dtype)
        row |= {"file": file, "type": known.name if known else str(array.dtype), "shape": list(array.shape)}
        self.rows.append(row | _figures(array))


def _layer_name(layer: Layer) -> str:
    """Return the name of a layer, or ``type#id`` if it has none."""
    return layer.name or f"{layer.type}#{layer.id}"


def _write(path: Path, array: np.ndarray) -> None:
    """Write a ``.npy`` file under another name and rename it, so that ``path`` never holds half an array."""
    with NewFile(path, swept=True) as new:
        np.lib.format.write_array(new.file, storable(array), allow_pickle=False)
        new.finish()


def storable(array: np.ndarray) -> np.ndarray:
    """Return the array in a dtype that ``.npy`` can hold.

    Floats of ml_dtypes become float32, its integers int8. Strings become fixed-width strings or, where these would lose
    or waste too much, the bytes of a string constant as uint8. Any other array is returned as it is, without a copy.
    """
    return numbers(stored_strings(array))


def stored_strings(array: np.ndarray) -> np.ndarray:
    """Return strings as ``.npy`` can hold them: see ``storable``. Any other array is returned as it is."""
    if array.dtype != object:
        return array
    fixed = fixed_width(array)
    return fixed if fixed is not None else np.frombuffer(pack(array, ELEMENT_TYPES["string"]), np.uint8)


def _figures(array: np.ndarray) -> dict[str, Any]:
    """Return statistics of an array: min, mean, max and std of its finite elements, counts of NaN and Inf, and a hash.

    The hash is the SHA-256 of the bytes in C order, for strings of those in the .bin.
    """
    digest = hashlib.sha256()
    for block in blocks(array):
        digest.update(block.tobytes() if array.dtype != object else pack(block, ELEMENT_TYPES["string"]))
    known = statistics(array)
    return {
        "min": known.min, "mean": known.mean, "max": known.max, "std": known.std, "nan": known.nan, "inf": known.inf,
        "sha256": digest.hexdigest(),
    }  # fmt: skip
