"""The page docs/conformance-coverage.md: what the suite covers of each operation, and what it does not cover."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from irrun.conformance.suite import DECLARATIONS, Case, Operation, Suite
from irrun.specification import Wording, wording
from irrun.types import ELEMENT_TYPES, ElementType
from places import ROOT

__all__ = ["PAGE", "holes", "page"]

PAGE = ROOT / "docs" / "conformance-coverage.md"

_HEAD = """# Coverage of the conformance suite

`python -m tools export_suite` writes this page. A row counts the cases of a version of an operation: those with
expected values, those to refuse, and the open ones. "Clauses" are the numbered constraints of which a case breaks one.
"Types" are the element types among those that its inputs may have; "declared" is how inputs are declared: `s` with
static shapes, `d` with unknown dims, `r` with unknown rank.

{total}

| operation | values | refuse | open | clauses | types | declared |
| --- | ---: | ---: | ---: | ---: | ---: | --- |
"""

_REASONS = """
## Holes

A hole is a clause, an element type or a kind of declaration that no case of an operation has, each with its reason.

- *stored*: u1, u3, u6 and nf4 are types of stored weights. Variables, bodies and outputs do not have them.
- *powers of two*: f8e8m0 has neither zero nor negative numbers, and every row of the operation has one of them.
- *few numbers*: no row of the operation has only numbers that the type has, such as f4e2m1, whose 15 numbers are
  0, ±0.5, ±1, ±1.5, ±2, ±3, ±4 and ±6. A row whose inputs are rounded would be another row.
- *truth values*: the page allows any type, but its formula has no meaning for truth values.
- *rounding*: the page allows integers, but does not say how the operation rounds what is none.
- *random*: the numbers of the outputs are random.
- *one declaration*: the operation has no input whose shape may be unknown, or its tables have no dynamic rows.
- *silent*: no sentence of the page is contradicted by a model that irrun refuses, so its cases are open.
- *undefined*: the page leaves all values of its cases open.
- *no row*: the tables of the tests have no row. These are gaps.

| operation | hole | reason |
| --- | --- | --- |
"""


def page(suite: Suite) -> str:
    """Return the text of the page."""
    by_operation = _by_operation(suite.cases)
    rows = "".join(_row(name, operation, by_operation[name]) for name, operation in sorted(suite.operations.items()))
    refused = "".join(f"| {name} | {hole} | {reason} |\n" for name, hole, reason in holes(suite))
    verdicts = [sum(case.verdict == verdict for case in suite.cases) for verdict in ("values", "refuse", "open")]
    total = (
        f"{len(suite.cases):,} cases of {len(suite.operations)} versions: {verdicts[0]:,} with values, {verdicts[1]:,} to "
        f"refuse, {verdicts[2]:,} open."
    )
    return _HEAD.format(total=total) + rows + _REASONS + refused


def holes(suite: Suite) -> Iterator[tuple[str, str, str]]:
    """Yield the operation, the hole and its reason for everything that no case covers."""
    by_operation = _by_operation(suite.cases)
    for name, operation in sorted(suite.operations.items()):
        cases = by_operation[name]
        page = wording(name)
        for reason, silent in (("silent", True), ("no row", False)):
            clauses = [
                label for label in operation.clauses
                if label not in _clauses(cases) and (page is not None and _is_silent(page, label)) == silent
            ]  # fmt: skip
            if clauses:
                yield name, f"clauses {', '.join(clauses)}", reason
        by_reason: dict[str, list[str]] = defaultdict(list)
        for type in operation.types:
            if type not in _types(cases):
                by_reason[_reason(name, ELEMENT_TYPES[type])].append(type)
        for reason, listed in by_reason.items():
            yield name, f"types {', '.join(listed)}", reason
        declared = [d for d in DECLARATIONS if d not in _declared(cases)]
        if declared:
            yield name, f"declared as {', '.join(declared)}", "one declaration" if len(declared) == 2 else "no row"
        if not any(case.verdict == "values" for case in cases):
            yield name, "values", "undefined" if any(case.verdict == "open" for case in cases) else "no row"


def _is_silent(page: Wording, label: str) -> bool:
    """Return whether a page says nothing that a clause, or each row of it, could rest on."""
    return label in page.silent or any(key.split("-")[0].upper() == label for key in page.silent)


def _by_operation(cases: Sequence[Case]) -> Mapping[str, list[Case]]:
    found: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        found[case.operation].append(case)
    return found


def _row(name: str, operation: Operation, cases: Sequence[Case]) -> str:
    counts = [sum(case.verdict == verdict for case in cases) for verdict in ("values", "refuse", "open")]
    clauses = f"{len(_clauses(cases) & operation.clauses.keys())}/{len(operation.clauses)}"
    types = f"{len(_types(cases) & set(operation.types))}/{len(operation.types)}"
    declared = "".join(d[0] if d in _declared(cases) else "-" for d in DECLARATIONS)
    return f"| {name} | {counts[0]} | {counts[1]} | {counts[2]} | {clauses} | {types} | {declared} |\n"


def _clauses(cases: Sequence[Case]) -> set[str]:
    return {case.clause for case in cases}


def _types(cases: Sequence[Case]) -> set[str]:
    return {type for case in cases if case.verdict == "values" for type in case.types}


def _declared(cases: Sequence[Case]) -> set[str]:
    return {case.declaration for case in cases if case.verdict == "values"}


_ROUNDED = ("AvgPool-14", "AvgPool-16", "GRN-1", "MVN-2", "SoftMax-1")
"""Operations whose outputs are seldom integers, and whose pages allow integers."""


def _reason(operation: str, type: ElementType) -> str:
    """Return why no case of an operation has an element type."""
    if type.is_storage:
        return "stored"
    if operation.startswith("RandomUniform-"):
        return "random"
    if type.name == "f8e8m0":
        return "powers of two"
    if type.kind == "boolean":
        return "truth values"
    if type.is_integer and operation in _ROUNDED:
        return "rounding"
    return "few numbers" if type.bits <= 8 else "no row"
