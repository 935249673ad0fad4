"""Collect the tables of the operations: ``VALUES``, ``SHAPES``, ``REFUSALS`` and ``CASES`` are tests.

A table is one test, which runs all rows; with ``--each-row``, each row is a test, such as ``VALUES[spec-1]``. The test
``VALUES-odd`` calls the kernels of ``VALUES`` with inputs in odd memory, and with special numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest

import grouped
import kit
from odd_calls import check_odd_calls
from oracle import Oracle

_CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    "SHAPES": kit.check_shapes,
    "REFUSALS": kit.check_refusal,
}


def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    if not isinstance(obj, Sequence):
        return None
    if name == "VALUES":
        return [
            *_tests(collector, name, obj, kit.check_values),
            *_tests(collector, f"{name}-odd", obj, check_odd_calls),
        ]
    if name in _CHECKS:
        return list(_tests(collector, name, obj, _CHECKS[name]))
    return list(_tests_of_cases(collector, obj)) if name == "CASES" else None


def _tests(
    collector: pytest.Collector, name: str, rows: Sequence[Any], check: Callable[..., None], lane: str = "spec"
) -> Iterator[pytest.Item]:
    """Yield the tests of the rows. The lane ``openvino`` passes OpenVINO to ``check`` as well."""
    ids = grouped.unique(row.id for row in rows)
    if grouped.each_row:
        for id, row in zip(ids, rows):
            yield _test(collector, f"{name}[{id}]", lambda run, row=row: run(row), check, lane)
    elif rows:
        how_to_run = str(collector.path.relative_to(collector.config.rootpath))
        yield _test(collector, name, lambda run: grouped.run_rows(run, zip(ids, rows), how_to_run), check, lane)


def _tests_of_cases(collector: pytest.Collector, cases: Sequence[kit.Case]) -> Iterator[pytest.Item]:
    lanes = kit.declared_cases(cases)
    yield from _tests(collector, "CASES", lanes["spec"], kit.check_recorded)
    yield from _tests(collector, "CASES-new", lanes["openvino"], kit.check_against_openvino, "openvino")
    yield from _tests(collector, "CASES-dynamic", lanes["slow"], kit.check_against_openvino, "slow")


def _test(
    collector: pytest.Collector,
    name: str,
    run: Callable[[Callable[..., None]], None],
    check: Callable[..., None],
    lane: str,
) -> pytest.Item:
    def alone() -> None:
        run(check)

    def with_openvino(oracle: Oracle) -> None:
        run(lambda row: check(row, oracle))

    item = pytest.Function.from_parent(collector, name=name, callobj=alone if lane == "spec" else with_openvino)
    if lane == "slow":
        item.add_marker("slow")
    return item
