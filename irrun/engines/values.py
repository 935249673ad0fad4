"""Tensors in messages, and inner values that stay in their files until somebody reads them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.engines.outcomes import Place
from irrun.engines.tensors import decoded, encoded
from irrun.files import writing

__all__ = ["Value", "read_tensor", "write_tensor"]

_MAX_INLINE_BYTES: Final = 1 << 12
"""The most bytes of a tensor that a message contains itself. A larger tensor is passed in a file."""


class Value:
    """An inner value that an engine has computed. ``array`` reads it from its file, and ``drop`` removes the file.

    ``iteration`` counts the values of the same place in one run, from 0 on: the iterations of a loop. ``record`` is
    the message that describes the value; a value of a recording has none. ``copy`` counts the copies of the model in
    which an engine computes inner values: values of two copies may have other roundings.
    """

    def __init__(
        self,
        place: Place,
        iteration: int,
        read: Callable[[], np.ndarray],
        record: Mapping[str, Any] | None = None,
        copy: int = 0,
    ) -> None:
        self.place = place
        self.iteration = iteration
        self.record = record
        self.copy = copy
        self._read = read

    def array(self) -> np.ndarray:
        """Return the value. Raises ValueError if the engine has described it wrongly."""
        return self._read()

    def drop(self) -> None:
        """Remove the file of the value."""
        if self.record is not None and "file" in self.record:
            Path(self.record["file"]).unlink(missing_ok=True)

    @staticmethod
    def of(place: Place, iteration: int, record: Mapping[str, Any], copy: int = 0) -> Value:
        """Return the value that a message describes."""
        return Value(place, iteration, lambda: read_tensor(record), record, copy)


def read_tensor(record: Mapping[str, Any], *, remove: bool = False) -> np.ndarray:
    """Return the array that a record of a message describes, and ``remove`` its file.

    Raises ValueError if the record is wrong.
    """
    try:
        type, shape = str(record["type"]), tuple(int(dim) for dim in record["shape"])
        if "values" in record:
            return decoded(type, shape, list(record["values"]))
        if "file" in record:
            data = np.fromfile(record["file"], np.uint8)
            if remove:
                Path(record["file"]).unlink()
            return decoded(type, shape, data)
        return decoded(type, shape, base64.b64decode(record["data"], validate=True))
    except (KeyError, TypeError, OSError) as error:
        raise ValueError(f"a tensor cannot be read: {error}") from None


def write_tensor(array: np.ndarray, type: str | None, path: Path) -> dict[str, Any]:
    """Return the record of a tensor for a message. A large one is written to the file ``path``."""
    name, shape, data = encoded(array, type)
    record = {"type": name, "shape": list(shape)}
    if isinstance(data, list):
        return {**record, "values": data}
    if len(data) <= _MAX_INLINE_BYTES:
        return {**record, "data": base64.b64encode(data).decode("ascii")}
    with writing(path):
        path.write_bytes(data)
    return {**record, "file": str(path)}
