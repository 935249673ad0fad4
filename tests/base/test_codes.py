"""The table of codes, and what follows from their kinds."""

import pytest

from irrun.cli._errors import exit_status
from irrun.codes import CODES, Code, Kind
from irrun.diagnostics import diagnostic
from irrun.fleet.trees import Outcome


def test_ids_ascend_and_names_differ() -> None:
    assert list(CODES) == sorted(CODES)
    assert len({code.name for code in CODES.values()}) == len(CODES)


@pytest.mark.parametrize("kind", Kind, ids=lambda kind: kind.name)
def test_every_kind_has_a_code(kind: Kind) -> None:
    assert kind in {code.kind for code in CODES.values()}


@pytest.mark.parametrize("code", CODES.values(), ids=lambda code: code.id)
def test_a_diagnostic_is_of_its_kind(code: Code) -> None:
    found = diagnostic(code.id, "something is wrong")
    assert (found.severity, found.blocks) == (code.kind.severity, code.kind.blocks)
    assert exit_status([found]) == code.kind.exit_status


@pytest.mark.parametrize(
    ("codes", "status", "outcome"),
    [
        ("", 0, "ok"),
        ("IR108", 0, "warnings"),
        ("IR201", 3, "unsupported"),
        ("IR201 IR207 IR108", 3, "unsupported"),
        ("IR201 IR401", 1, "failed"),
        ("IR401", 1, "failed"),
        ("IR604", 1, "failed"),
        ("IR401 IR001", 2, "unreadable"),
        ("IR601", 2, "failed"),
        ("IR201 IR601", 2, "failed"),
    ],
)
def test_the_gravest_kind_decides(codes: str, status: int, outcome: str) -> None:
    found = tuple(diagnostic(code, "something is wrong") for code in codes.split())
    assert exit_status(found) == status
    assert Outcome(found).status == outcome
