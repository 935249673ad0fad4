"""The outputs of a run: statistics for the table of outputs, and the .npz file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from irrun.arrays.reading import stand_in
from irrun.arrays.writing import output_names, write_npy, write_npz
from irrun.files import NewFile
from irrun.model import Port
from irrun.running.executor import Executable, Outputs
from irrun.types import ElementType, PartialShape

__all__ = ["Output", "describe", "describe_taps", "number", "save"]

_FIRST: Final = 6
"""The number of first values that are shown of each output: as many as fit in a row of the table."""


@dataclass(frozen=True, slots=True)
class Output:
    """An output and its statistics.

    ``least``, ``mean`` and ``most`` are over the finite values, and None if there are none. ``nans`` and
    ``infinities`` count elements, and ``first`` holds the first elements in C order.
    """

    name: str
    array: np.ndarray
    type: ElementType
    declared_type: ElementType | None
    declared_shape: PartialShape | None
    least: float | int | None
    mean: float | None
    most: float | int | None
    nans: int
    infinities: int
    first: tuple[Any, ...]

    @property
    def as_declared(self) -> bool | None:
        """Whether type and shape agree with the output's port; None if the port declares neither."""
        if self.declared_type is None and self.declared_shape is None:
            return None
        type_fits = self.declared_type in (None, self.type) or self.declared_type.kind == "dynamic"
        return type_fits and (self.declared_shape is None or self.declared_shape.fits(self.array.shape))


def describe(executable: Executable, outputs: Outputs) -> list[Output]:
    """Return the outputs with their statistics, in the order of the model's Results."""
    model, plan = executable.model, executable.plan
    described: list[Output] = []
    for name, result, slot, array in zip(output_names(model), model.results, plan.results, outputs.arrays):
        fed = model.fed_by(result, 0)
        port = fed[1] if fed else None
        described.append(_output(name, array, plan.types[slot], port))
    return described


def describe_taps(executable: Executable, outputs: Outputs) -> list[Output]:
    """Return the tapped intermediate values with their statistics."""
    model = executable.model
    keys = {model.output_name(id, i): (id, i) for id, l in model.layers.items() for i in range(len(l.outputs))}
    described: list[Output] = []
    for name, array in outputs.taps.items():
        id, position = keys[name]
        known = executable.plan.values[id, position].type
        described.append(_output(name, array, known, model.layers[id].outputs[position]))
    return described


def _output(name: str, array: np.ndarray, known: ElementType, port: Port | None) -> Output:
    element_type = known if known.kind != "dynamic" else ElementType.of(array.dtype) or known
    first = tuple(_plain(array.flat[i]) for i in range(min(array.size, _FIRST)))
    return Output(name, array, element_type, port and port.type, port and port.shape, *_figures(array), first)


def _figures(array: np.ndarray) -> tuple[Any, float | None, Any, int, int]:
    """Return the least value, the mean, the greatest value, the number of NaNs, and the number of infinities."""
    if array.dtype == object:
        return None, None, None, 0, 0
    if array.dtype.isbuiltin == 2:
        array = array.astype(stand_in(array.dtype))
    nans = infinities = 0
    if array.dtype.kind == "f":
        finite = np.isfinite(array)
        if not finite.all():
            nans = int(np.isnan(array).sum())
            infinities = int(array.size - finite.sum()) - nans
            array = array[finite]
    if array.size == 0:
        return None, None, None, nans, infinities
    with np.errstate(all="ignore"):
        mean = float(np.mean(array, dtype=np.float64))
    return _plain(array.min()), mean, _plain(array.max()), nans, infinities


def _plain(item: Any) -> Any:
    """Return an element as a number, boolean or string of Python."""
    if isinstance(item, str):
        return str(item)
    if isinstance(item, (bool, np.bool_)):
        return bool(item)
    item = np.asarray(item)
    if item.dtype.isbuiltin == 2:
        item = item.astype(stand_in(item.dtype))
    return item.item()


def number(value: Any) -> str:
    """Return a value as the table of outputs shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= 24 else f'"{value[:21]}..."'
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def save(path: Path, outputs: Iterable[Output]) -> list[Output]:
    """Write a .npz file that holds each output under its name, or a .npy file that holds the only one.

    Return the outputs saved as a stand-in type. The file is written as a whole or not at all.
    """
    outputs = list(outputs)
    with NewFile(path) as new:
        if path.suffix.lower() == ".npy":
            changed = [0] if write_npy(new.file, outputs[0].array) else []
        else:
            changed = write_npz(new.file, [(output.name, output.array) for output in outputs])
        new.finish()
    return [outputs[number] for number in changed]
