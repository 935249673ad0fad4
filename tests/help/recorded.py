"""The rows of the tables of operations that the conformance suite has as cases, and OpenVINO's answers to them.

``recorded.json`` names the first case of each row by a digest of the row, so that a test sees without OpenVINO whether
the suite has a row as it stands. A new or changed row is built and run by OpenVINO in each run of the tests until
`python -m tools export_suite` has stored it.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irrun import conformance
from irrun.conformance import read_suite
from irrun.engines.values import read_tensor

if TYPE_CHECKING:
    from kit import Case

__all__ = ["FILE", "answer", "case_of", "digest", "is_recorded", "stored", "suite", "write"]

FILE = Path(__file__).with_name("recorded.json")


def is_recorded(row: Case) -> bool:
    """Return whether the suite has a row as it stands."""
    return digest(row) in _names()


def case_of(row: Case, declared: str = "static") -> conformance.Case | None:
    """Return the case of a row with this declaration, or None if the suite does not have it."""
    name = _names().get(digest(row), "")
    head, _, tail = name.partition("/static")
    return stored().get(f"{head}/{declared}{tail}") if name else None


def answer(row: Case) -> list[np.ndarray] | None:
    """Return the outputs of OpenVINO for a row, or None if they are not stored.

    An open case has them, too: no engine is judged by them, but irrun gives the same.
    """
    case = case_of(row)
    if case is None:
        return None
    step = case.steps[0]
    return [read_tensor(record) for record in step.outputs or step.seen] or None


def digest(row: Case) -> str:
    """Return a digest of a row without its expected outputs, which differ by rounding from machine to machine."""
    attributes = sorted((name, _plain(value)) for name, value in row.attributes.items())
    settings = row.op, row.id, attributes, tuple(row.shapes), tuple(row.constants), row.how, row.rtol, row.atol
    sha = hashlib.sha256(repr(settings).encode())
    for array in map(np.asarray, row.inputs):
        sha.update(f"{array.dtype.name if array.dtype.kind not in 'UO' else 'text'} {array.shape}".encode())
        sha.update(repr(array.tolist()).encode() if array.dtype.kind in "UO" else array.tobytes())
    return sha.hexdigest()[:12]


def _plain(value: Any) -> Any:
    """Return a value of Python for a scalar or an array of numpy, whose text depends on the version of numpy."""
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else value


def write(names: Mapping[str, str]) -> None:
    """Replace the file: the name of the first case of each row, by the digest of the row."""
    FILE.write_text(json.dumps(names, indent=0, sort_keys=True) + "\n", "utf-8")


@cache
def _names() -> Mapping[str, str]:
    return json.loads(FILE.read_text("utf-8"))


@cache
def suite() -> conformance.Suite:
    """Return the suite, which takes seconds to read: each process of the tests reads it once."""
    suite = read_suite()
    gc.freeze()  # the collector need not go through 26,000 cases again and again
    return suite


@cache
def stored() -> Mapping[str, conformance.Case]:
    """Return the cases of the suite by name."""
    return {case.name: case for case in suite().cases}
