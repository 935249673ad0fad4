"""The quotations of the specification: each clause, type and refusal rests on a sentence, or gives a reason why not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import kit
import tables
from grouped import each
from irrun.opdef import Op, all_ops, is_custom, labels, resolve
from irrun.specification import FOLDER, Wording, parsed, wording
from irrun.specification.undefined import BEHAVIOURS
from irrun.types import type_set

VERSIONS = {f"{cls.type}-{cls.since}": cls for cls in all_ops() if not is_custom(cls)}
QUOTED = {path.stem for path in FOLDER.glob("*.toml")}


def _rows() -> dict[str, list[tables.Row]]:
    """Return the rows of the tables by version."""
    found: dict[str, list[tables.Row]] = {}
    for path in sorted(tables.FOLDER.glob("test_*.py")):
        for row in tables.rows(path):
            type, opset = row.op.rsplit("-", 1)
            cls = resolve(type, int(opset))
            assert cls is not None
            found.setdefault(f"{cls.type}-{cls.since}", []).append(row)
    return found


ROWS = _rows()


def _wording(name: str) -> Wording:
    found = wording(name)
    assert found is not None
    return found


def test_each_file_is_of_a_version() -> None:
    assert VERSIONS.keys() >= QUOTED
    assert len({name.lower() for name in VERSIONS}) == len(VERSIONS), "files differ by more than upper and lower case"


@each("name", sorted(QUOTED))
def test_each_clause_has_a_sentence_or_a_reason(name: str) -> None:
    found, clauses = _wording(name), labels(VERSIONS[name])
    rows = {row.id for row in ROWS.get(name, ())}
    named = {*clauses, *(label for label in (*found.clauses, *found.silent) if re.fullmatch(r"IR\d+", label))}
    assert {*clauses} <= {*found.clauses, *found.silent}
    assert found.clauses.keys() <= named
    assert found.silent.keys() <= named | rows
    assert found.rows.keys() <= rows


@each("name", sorted(QUOTED))
def test_each_type_is_one_of_the_page(name: str) -> None:
    found, cls = _wording(name), VERSIONS[name]
    variables = {port.type for port in cls.inputs}
    assert found.types.keys() == variables
    for variable in variables:
        of_page, declared = found.types[variable], type_set(cls.types.get(variable, variable))
        beyond = {type.name for type in declared - type_set(of_page.types) - type_set(of_page.also)}
        assert not beyond, f"{variable}: the page does not allow {', '.join(sorted(beyond))}"


@each("name", sorted(QUOTED))
def test_each_refusal_rests_on_a_sentence(name: str) -> None:
    found = _wording(name)
    for row in ROWS.get(name, ()):
        if isinstance(row, kit.Refusal):
            label = row.id.split("-")[0].upper()
            says = label == "IR301" or label in found.clauses or label in found.silent or row.id in found.silent
            assert says, f"{row.id}: no sentence and no reason for {label}"


@each("name", sorted(QUOTED))
def test_each_behaviour_is_known(name: str) -> None:
    assert _wording(name).undefined.keys() <= BEHAVIOURS.keys()


def test_each_behaviour_has_a_sentence() -> None:
    assert BEHAVIOURS.keys() == {behaviour for name in QUOTED for behaviour in _wording(name).undefined}


def _op(name: str, attributes: dict[str, object] | None = None) -> Op:
    return kit.operation(name, attributes)


@each(
    "name, attributes, inputs, expected",
    [
        ("Divide-1", {}, [np.array([1, 2]), np.array([0, 1])], [True, False]),
        ("Divide-1", {}, [np.array([1, 2]), np.array([3, 1])], [False, False]),
        ("Divide-1", {}, [np.array([1, 2]), None], False),
    ],
)
def test_what_a_page_leaves_open(
    name: str, attributes: dict[str, object], inputs: list[np.ndarray | None], expected: object
) -> None:
    found: list[Any] = [BEHAVIOURS[each](_op(name, attributes), inputs) for each in _wording(name).undefined]
    assert any(np.array_equal(undefined, np.asarray(expected)) for undefined in found)


# ---------------------------------------------------------------------------------------------
# the files

_WHOLE = """
commit = "abc"
values = "It adds."
[types]
T = { says = "any", types = "numeric" }
[clauses]
C1 = ["none"]
[silent]
c2-x = "why"
"""


def test_a_file_is_read() -> None:
    found = parsed("Add-1", _WHOLE)
    assert found.sentences() == ("It adds.", "any", "none")
    assert found.silent == {"c2-x": "why"}


@each(
    "old, new, said",
    [
        ("commit", "comit", "commit"),
        ('values = "It adds."', "", "values"),
        ("says", "say", "say"),
        ('["none"]', "[]", "belongs to silent"),
        ('["none"]', "[1]", "is a text"),
        ("c2-x", "C1", "C1 has sentences"),
        ("[silent]", "[silence]", "no field silence"),
        ("[types]", "[types", "line"),
    ],
)
def test_a_wrong_file_is_named(old: str, new: str, said: str) -> None:
    assert old in _WHOLE
    with pytest.raises(ValueError, match=rf"^Add-1\.toml: .*{said}"):
        parsed("Add-1", _WHOLE.replace(old, new))
