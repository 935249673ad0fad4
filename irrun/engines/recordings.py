"""Engines that run nothing: values that were written by `irrun run`, as a folder (--dump) or as an array file (-o)."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irrun.diagnostics import ReadError, diagnostic
from irrun.engines.execution import RuntimeGraph
from irrun.engines.kinds import DUMP, KINDS
from irrun.engines.outcomes import Failure, Input, Loaded, Origin, Output, Outputs, Place, Refusal
from irrun.engines.sides import Side
from irrun.engines.tensors import stored
from irrun.engines.values import Value
from irrun.types import ElementType

__all__ = ["Recording"]


class Recording:
    """The values of a run in the past. Whatever the inputs are, it gives the same values.

    A folder shows inner values, an array file outputs. ``inputs`` are the values of the inputs that a folder holds, in
    the order of ``Loaded.inputs``. Raises ReadError (IR000) if the file or folder cannot be read.
    """

    def __init__(self, side: Side) -> None:
        is_dump = DUMP in KINDS[side.kind].reads
        self.name = f"{'values' if is_dump else 'arrays'} of {side.path}"
        self.properties: Mapping[str, str] = {}
        self.inputs: list[Value] = []
        self._inputs: list[Input] = []
        self._outputs: list[Output] = []
        self._values: list[tuple[Place, Origin, Callable[[], np.ndarray]]] = []
        if side.path is None:
            raise _unreadable(side, "no path was passed")
        try:
            if is_dump:
                self._read(side.path)
            else:
                self._outputs = list(_archived(side.path))
        except OSError as error:
            if is_dump and side.path.is_dir() and isinstance(error, FileNotFoundError):
                why = "it has no index.json; pass a folder that `irrun run --dump` wrote"
                raise _unreadable(side, why) from None
            raise _unreadable(side, (error.strerror or str(error)).lower()) from None
        except Exception as error:  # numpy, zipfile and the decompressors raise whatever a corrupt file leads them to
            raise _unreadable(side, str(error)) from None

    def load(self, path: str | os.PathLike[str] | None = None, *, inner: bool = False) -> Loaded | Failure:
        """Return the values that are recorded as outputs and, if ``inner``, as inner values."""
        if path is not None:
            return Refusal("recorded values run no model")
        places = {place: origin for place, origin, _ in self._values} if inner else {}
        return Loaded(tuple(self._inputs), tuple(output.names for output in self._outputs), places, neutral=True)

    def infer(
        self,
        feeds: Mapping[Any, np.ndarray],
        taps: Sequence[Place] = (),
        on_value: Callable[[Value], None] | None = None,
        on_repeated: Callable[[Value], None] | None = None,
    ) -> Outputs | Failure:
        """Return the recorded outputs, and pass the recorded values at ``taps`` to ``on_value``."""
        wanted, visits = set(taps), Counter[Place]()
        for place, _, read in self._values:
            if place in wanted and on_value is not None:
                on_value(Value(place, visits[place], read))
                visits[place] += 1
        return Outputs(tuple(self._outputs), 0)

    def runtime(self, feeds: Mapping[Any, np.ndarray], runs: int = 1) -> RuntimeGraph | Failure:
        """Refuse: nothing runs."""
        return Refusal(f"{self.name} show no runtime graph", "unavailable")

    def save(self, path: str | os.PathLike[str]) -> Failure | None:
        """Refuse: there is no model."""
        return Refusal(f"{self.name} are no model", "unavailable")

    def _read(self, folder: Path) -> None:
        """Read the index of a dump. Raises OSError or ValueError."""
        for row, place, read in _dumped(folder):
            if row["operation"].lower() != "parameter":
                self._values.append((place, Origin(row["operation"], ()), read))
            elif "iteration" not in row and place.layer not in {value.place.layer for value in self.inputs}:
                self.inputs.append(Value(place, 0, read))
                self._inputs.append(Input((place.layer,), row["type"], f"[{','.join(map(str, row['shape']))}]"))

    def reset(self) -> Failure | None:
        """Do nothing: a recording has no state."""
        return None

    def release(self) -> None:
        """Do nothing: a recording has no process."""


def _dumped(folder: Path) -> Iterator[tuple[Mapping[str, Any], Place, Callable[[], np.ndarray]]]:
    """Yield row and place of each value of a dump, and a function that reads it. Raises OSError or ValueError."""
    rows: list[dict[str, Any]] = json.loads((folder / "index.json").read_text("utf-8"))
    ports: dict[str, list[int]] = {}
    for row in rows:
        ids = ports.setdefault(row["layer"], [])
        if row["port"] not in ids:
            ids.append(row["port"])

        def read(row: dict[str, Any] = row) -> np.ndarray:
            file = (folder / row["file"]).resolve()
            if file.parent != folder.resolve():
                raise ValueError(f"{row['file']} lies outside of the dump")
            return stored(np.load(file, allow_pickle=False), row["type"])

        yield row, Place(row["layer"], ids.index(row["port"])), read


def _archived(path: Path) -> Iterator[Output]:
    """Yield the arrays of a .npz. Raises whatever numpy raises for a corrupt file."""
    with np.load(path, allow_pickle=False) as archive:
        for name in archive.files:
            array = archive[name]
            known = ElementType.of(array.dtype)
            if known is None:
                raise ValueError(f"the array {name!r} has dtype {array.dtype}, which no element type has")
            yield Output((name,), known.name, array)


def _unreadable(side: Side, why: str) -> ReadError:
    return ReadError(diagnostic("IR000", f"cannot read {side.path}: {why}", file=str(side.path)))
