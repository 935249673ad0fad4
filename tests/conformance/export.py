"""Write the conformance suite from the tables of the tests: `python -m tools export_suite`.

The tables are those of ``tests/ops``, of the departures, and of models of several layers. OpenVINO builds some of the
models, so that they are as it writes them. Of rows that are in the suite already, its answers are those in the suite;
OpenVINO computes the others.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import kit
import recorded
import tables
from conformance import composed, departures, internal, rows
from conformance.coverage import PAGE, page
from conformance.verdicts import faults, settled
from irrun.codes import CODES
from irrun.conformance.judging import difference
from irrun.conformance.suite import INTERNAL, SUITE, Case, Operation, Step, Suite, to_record, write_suite
from irrun.engines.values import read_tensor
from irrun.opdef import Op, all_ops, is_custom, labels
from irrun.specification import wording
from irrun.types import ELEMENT_TYPES, type_set

__all__ = ["cases", "files", "others", "suite"]


def files() -> list[Path]:
    """Return the test files of operations."""
    return sorted(tables.FOLDER.glob("test_*.py"))


def cases(paths: Iterable[Path]) -> Iterator[Case]:
    """Yield the cases of some test files of operations. A name that a file has twice gets a number.

    A case whose outputs differ from those in the suite by less than its tolerance is the one in the suite: numpy rounds
    differently from machine to machine.
    """
    yield from (case for _, case in _pairs(paths))


def _pairs(paths: Iterable[Path]) -> Iterator[tuple[tables.Row | None, Case]]:
    """Yield rows with their cases, and then the cases of further element types."""
    for path in paths:
        yield from ((row, _settled(case)) for row, case in _numbered(rows.cases(path)))
        yield from ((None, _settled(case)) for case in rows.carried_over(path))


def _settled(case: Case) -> Case:
    """Return the case with its sentence; the one in the suite if they differ by rounding alone."""
    case = settled(case)
    stored = recorded.stored().get(case.name)
    if stored is None or _without_outputs(stored) != _without_outputs(case):
        return case
    pairs = [pair for old, new in zip(stored.steps, case.steps) for pair in zip(_records(old), _records(new))]
    same = all(not difference(read_tensor(a), read_tensor(b), case.rtol, case.atol) for a, b in pairs)
    return stored if same else case


def _records(step: Step) -> Sequence[Mapping[str, Any]]:
    return step.outputs or step.seen


def _without_outputs(case: Case) -> Any:
    kinds = [[(o["type"], o["shape"]) for o in _records(step)] for step in case.steps]
    return kinds, to_record(replace(case, steps=[replace(step, outputs=(), seen=()) for step in case.steps]))


def others() -> Iterator[Case]:
    """Yield the cases that come from no test file of operations."""
    yield from map(settled, composed.cases())
    yield from map(settled, departures.cases())


def _numbered(pairs: Iterable[tuple[tables.Row, Case]]) -> Iterator[tuple[tables.Row, Case]]:
    times: Counter[str] = Counter()
    for row, case in pairs:
        times[case.name] += 1
        yield row, case if times[case.name] == 1 else replace(case, name=f"{case.name}~{times[case.name]}")


def suite() -> tuple[Suite, dict[str, str]]:
    """Return the whole suite, and the name of the first case of each row by the digest of the row."""
    pairs = list(_pairs(files()))
    every = [*(case for _, case in pairs), *others()]
    times = Counter(case.name for case in every)
    assert max(times.values()) == 1, times.most_common(3)
    operations = {
        rows.name_of(cls): Operation(cls.spec, _types(cls), labels(cls), _commit(cls))
        for cls in all_ops()
        if not is_custom(cls)
    }
    used = {case.clause for case in every}
    rules = {code: CODES[code].doc for code in sorted(CODES) if code in used}
    names: dict[str, str] = {}
    for row, case in pairs:
        if isinstance(row, kit.Case):
            names.setdefault(recorded.digest(row), case.name)
    return Suite(operations, rules, sorted(every, key=lambda case: case.name)), names


def _commit(cls: type[Op]) -> str:
    """Return the commit of the page that the sentences about an operation are quoted from."""
    found = wording(rows.name_of(cls))
    return "" if found is None else found.commit


def _types(cls: type[Op]) -> list[str]:
    """Return the element types that the inputs of an operation may have."""
    allowed = {type for port in cls.inputs for type in type_set(cls.types.get(port.type, port.type))}
    return [name for name, type in ELEMENT_TYPES.items() if type in allowed and type.kind != "dynamic"]


def main() -> None:
    begin = time.monotonic()
    made, names = suite()
    if wrong := list(faults(made)):
        sys.exit("\n".join([*wrong, f"not written: {len(wrong)} verdicts are unsound"]))
    size = write_suite(made, SUITE) + write_suite(internal.suite(), INTERNAL)
    recorded.write(names)
    PAGE.write_text(page(made), "utf-8")
    verdicts = Counter(case.verdict for case in made.cases)
    counted = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{len(made.cases):,} cases ({counted}), {size:,} bytes, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
