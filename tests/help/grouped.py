"""Tests of many rows that pytest collects as one: each row runs, and a failure lists every row that fails.

To collect a row costs more than to run it: tens of thousands of rows are hundreds of tests. With the option
``--each-row``, each row is a test of its own again, with the row's id in brackets: ``-k`` selects it, and
`python -m tools mutants` sees which lines it runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pytest

__all__ = ["each", "run_rows", "unique"]

_MAX_ROW_CHARS: Final = 2000
"""Characters of a row that a failure shows: more than any table has in a line of its source."""

each_row: bool = False
"""Whether ``--each-row`` was passed: ``tests/conftest.py`` sets it before tests are collected."""


def run_rows(check: Callable[..., object], rows: Iterable[tuple[str, Any]], how_to_run: str = "") -> None:
    """Call ``check`` with each row, and fail with the id, the values and the traceback of each row that fails.

    ``rows`` are pairs of an id and a row. ``how_to_run`` is the command that runs a single row, without its id.
    """
    failed: dict[str, str] = {}
    count = 0
    for id, row in rows:
        count += 1
        try:
            check(row)
        except (Exception, pytest.fail.Exception) as error:
            caught = pytest.ExceptionInfo.from_exception(error)
            caught.traceback = caught.traceback[1:]  # without this loop
            with np.printoptions(threshold=100):
                text = repr(row)
            text = text if len(text) <= _MAX_ROW_CHARS else f"{text[:_MAX_ROW_CHARS]}…"
            failed[id] = f"[{id}]: {text}\n{caught.getrepr(style='short')}"
    if failed:
        again = [f"to run one of them: python -m pytest {how_to_run} --each-row -k ID"] if how_to_run else []
        head = f"{len(failed)} of {count} rows fail: {', '.join(failed)}"
        pytest.fail("\n\n".join([head, *failed.values(), *again]), pytrace=False)


def each(name: str, rows: Iterable[Any], ids: Callable[[Any], object] | Sequence[str] | None = None) -> Any:
    """Decorate a test that is true of each row: as ``pytest.mark.parametrize``, but one test runs all rows.

    The rows share the fixtures of the test, so that it must leave them as they were. ``name`` is the name of the
    argument that gets the row, or several names with commas.
    """
    rows = list(rows)
    names = [name.strip() for name in name.split(",")]
    if each_row or not rows:
        argnames = name if len(names) == 1 else names
        return pytest.mark.parametrize(argnames, rows, ids=ids)

    def decorate(test: Callable[..., object]) -> Callable[..., object]:
        labels = unique([_id(ids, number, names, row) for number, row in enumerate(rows)])

        @functools.wraps(test)
        def all_rows(**fixtures: Any) -> None:
            def check(row: Any) -> object:
                return test(**dict(zip(names, row if len(names) > 1 else (row,), strict=True)), **fixtures)

            run_rows(check, zip(labels, rows))

        signature = inspect.signature(test)
        others = [parameter for parameter in signature.parameters.values() if parameter.name not in names]
        all_rows.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return all_rows

    return decorate


def unique(ids: Iterable[str]) -> list[str]:
    """Return the ids, with a number added to each that occurs more than once, as pytest does."""
    ids = list(ids)
    seen: dict[str, int] = {}
    found: list[str] = []
    repeated = {id for id in ids if ids.count(id) > 1} if len(set(ids)) < len(ids) else set[str]()
    for id in ids:
        number = seen[id] = seen.get(id, -1) + 1
        found.append(f"{id}{number}" if id in repeated else id)
    return found


def _id(ids: Callable[[Any], object] | Sequence[str] | None, number: int, names: list[str], row: Any) -> str:
    """Return the id that pytest gives a row, so that ``-k`` selects what a failure names."""
    if ids is not None and not callable(ids):
        return ids[number]
    values = list(row) if len(names) > 1 else [row]
    return "-".join(
        str(ids(value)) if ids is not None else _default_id(name, number, value)
        for name, value in zip(names, values, strict=True)
    )


def _default_id(name: str, number: int, value: Any) -> str:
    if isinstance(value, str | int | float | complex | None):
        return str(value)
    return value.__name__ if isinstance(getattr(value, "__name__", None), str) else f"{name}{number}"
