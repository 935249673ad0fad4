"""Write the conformance suite from the tables of the tests: `python tests/conformance/export.py`.

The tables are those of ``tests/ops``, of the departures, and of models of several layers. OpenVINO builds some of the
models, so that they are as it writes them; its answers are the stored ones of ``tests/answers.xz``.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))

import tables
from conformance import composed, departures, rows
from conformance.coverage import PAGE, page
from irrun.conformance.suite import SUITE, Case, Operation, Suite, write_suite
from irrun.diagnostics import CODES
from irrun.opdef import Op, all_ops, is_custom, labels
from irrun.types import ELEMENT_TYPES, type_set

__all__ = ["cases", "files", "others", "suite"]


def files() -> list[Path]:
    """Return the test files of operations."""
    return sorted(tables.FOLDER.glob("test_*.py"))


def cases(paths: Iterable[Path]) -> Iterator[Case]:
    """Yield the cases of some test files of operations. A name that a file has twice gets a number."""
    for path in paths:
        yield from _numbered(rows.cases(path))


def others() -> Iterator[Case]:
    """Yield the cases that come from no test file of operations."""
    yield from composed.cases()
    yield from departures.cases()


def _numbered(cases: Iterable[Case]) -> Iterator[Case]:
    times: Counter[str] = Counter()
    for case in cases:
        times[case.name] += 1
        yield case if times[case.name] == 1 else replace(case, name=f"{case.name}~{times[case.name]}")


def suite() -> Suite:
    """Return the whole suite."""
    every = [*cases(files()), *others()]
    names = Counter(case.name for case in every)
    assert max(names.values()) == 1, names.most_common(3)
    operations = {
        rows.name_of(cls): Operation(cls.spec, _types(cls), labels(cls)) for cls in all_ops() if not is_custom(cls)
    }
    used = {case.clause for case in every}
    rules = {code: CODES[code].doc for code in sorted(CODES) if code in used}
    return Suite(operations, rules, sorted(every, key=lambda case: case.name))


def _types(cls: type[Op]) -> list[str]:
    """Return the element types that the inputs of an operation may have."""
    allowed = {type for port in cls.inputs for type in type_set(cls.types.get(port.type, port.type))}
    return [name for name, type in ELEMENT_TYPES.items() if type in allowed and type.kind != "dynamic"]


def main() -> None:
    begin = time.monotonic()
    made = suite()
    size = write_suite(made, SUITE)
    PAGE.write_text(page(made), "utf-8")
    verdicts = Counter(case.verdict for case in made.cases)
    counted = ", ".join(f"{count:,} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"{len(made.cases):,} cases ({counted}), {size:,} bytes, {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
