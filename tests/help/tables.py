"""The tables of ``tests/ops``, for tests that need the rows of every operation."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kit import Case, Refusal, Shapes, Values
from places import TESTS

Row = Case | Values | Shapes | Refusal

FOLDER = TESTS / "ops"


@cache
def tests(path: Path) -> list[Callable[..., Any]]:
    """The tests of a file; those that ``kit`` made of a table hold its rows as ``rows``."""
    name = f"tests.ops.{path.stem}"  # as pytest names it, so that each file is loaded once
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    module = sys.modules[name]
    return [value for name, value in vars(module).items() if name.startswith("test") and callable(value)]


def rows(path: Path) -> Iterator[Row]:
    """The rows of a file's tables."""
    for test in tests(path):
        yield from getattr(test, "rows", ())


def cases() -> Iterator[Case]:
    """The models that OpenVINO builds and runs, of all files."""
    for path in sorted(FOLDER.glob("test_*.py")):
        yield from (row for row in rows(path) if isinstance(row, Case))
