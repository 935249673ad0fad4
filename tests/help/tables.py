"""The tables of ``tests/ops``, for tests that need the rows of every operation."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from kit import Case, Refusal, Shapes, Values
from places import TESTS

Row = Case | Values | Shapes | Refusal

FOLDER = TESTS / "ops"
NAMES = ("VALUES", "SHAPES", "REFUSALS", "CASES")
"""The names of the tables, of rows of ``Values``, ``Shapes``, ``Refusal`` and ``Case``."""


@cache
def module(path: Path) -> ModuleType:
    """Return the module of a file of ``tests/ops``."""
    name = f"tests.ops.{path.stem}"  # as pytest names it, so that each file is loaded once
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a file's tables, table by table."""
    for name in NAMES:
        yield from getattr(module(path), name, ())


def cases() -> Iterator[Case]:
    """The models that OpenVINO builds and runs, of all files."""
    for path in sorted(FOLDER.glob("test_*.py")):
        yield from (row for row in rows(path) if isinstance(row, Case))
