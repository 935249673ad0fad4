"""Which entries the package holds: the kernels, and the types of the arguments with which models call them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import irrun
from irrun.fast.machine.entries import ArgumentType
from irrun.opdef import Precision
from irrun.running.generate import draw
from kernel_calls.calls import calls
from kernel_calls.kernels import function_of, kernels
from kernel_calls.models import MODELS

__all__ = ["ENTRIES", "Entry", "called", "fits", "read", "record", "write"]

ENTRIES: Final = Path(__file__).with_name("entries.json")
_SEED: Final = 20
_RUNS: Final = 5
"""Runs of each model: the third of a decoder makes a plan of its own."""
_PRECISIONS: Final[tuple[Precision, ...]] = "f32", "bf16"
_NAMES: Final = {"Number": "float32"}
"""The names of types by those that annotations give them."""
Entry = tuple[str, tuple[ArgumentType, ...]]


def read(file: Path) -> set[Entry]:
    """Return the entries in a file."""
    table: dict[str, list[list[Any]]] = json.loads(file.read_text("utf-8"))
    return {(base, tuple(map(_type, types))) for base, rows in table.items() for types in rows}


def _type(value: Any) -> ArgumentType:
    return value if isinstance(value, str) else (value[0], value[1], value[2])


def called() -> Iterator[Entry]:
    """Yield the entries that this process has called."""
    for base, code in kernels().items():
        for types in code._types:
            yield base, types


def fits(base: str, types: tuple[ArgumentType, ...]) -> bool:
    """Return whether there is a kernel whose parameters have these types."""
    code = kernels().get(base)
    if code is None:
        return False
    parameters = [annotation for name, annotation in function_of(code).__annotations__.items() if name != "return"]
    given = [type if isinstance(type, str) else "ndarray" for type in types]
    return [_NAMES.get(annotation, annotation.removeprefix("np.")) for annotation in parameters] == given


def record(models: Iterable[Path], each: int) -> None:
    """Add to ``entries.json`` what ``each`` random models of each kind, and the given ones, call.

    Entries of kernels that no longer exist, or had other parameters, are left out.
    """
    os.environ["IRRUN_FAST"] = "always"
    for type in MODELS:
        for number in range(each):
            for _ in calls(type, _SEED, number):
                pass
    each_way = itertools.product(models, ("always", ""), _PRECISIONS)  # with the kernels of all plans
    for path, threshold, precision in each_way:
        os.environ["IRRUN_FAST"] = threshold
        executable = irrun.compile(path, precision=precision)
        feeds = draw(executable.model)
        for _ in range(_RUNS):
            executable(feeds)
    entries = {entry for entry in {*read(ENTRIES), *called()} if fits(*entry)}
    write(ENTRIES, entries)
    print(f"{len(entries)} entries of {len({base for base, _ in entries})} kernels")


def write(file: Path, entries: Iterable[Entry]) -> None:
    """Write entries to a file, one in a line."""
    table: dict[str, list[list[ArgumentType]]] = {}
    for base, types in sorted(entries, key=repr):
        table.setdefault(base, []).append([*types])
    lines = [f"{json.dumps(base)}: [\n  {rows}\n ]" for base, rows in ((b, _rows(r)) for b, r in table.items())]
    file.write_text("{\n " + ",\n ".join(lines) + "\n}\n", "utf-8")


def _rows(rows: Iterable[list[ArgumentType]]) -> str:
    return ",\n  ".join(map(json.dumps, rows))
