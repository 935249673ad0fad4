"""The stored answers of OpenVINO: complete, and those that OpenVINO still gives."""

from pathlib import Path

import numpy as np
import pytest

import answers
import tables
from answers import Answers
from kit import Case, ask, compare
from oracle import Oracle


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of stored answers that a test may write."""
    monkeypatch.setattr(answers, "FILE", tmp_path / "answers.xz")
    monkeypatch.setattr(answers, "version", lambda package: "2026.4.1")
    return tmp_path / "answers.xz"


ROW = Case("row", "Tile-1", [np.ones(3, np.float32)], {"axis": 0})
OUTPUTS = [np.array([1.5, np.nan], np.float32), np.array([["a", "bc"]]), np.empty((0, 2), np.int64), np.array(True)]


def test_what_is_written_is_read(file: Path) -> None:
    answers.write({answers.key(ROW): OUTPUTS})
    outputs = Answers().get(ROW)
    assert outputs is not None
    for got, want in zip(outputs, OUTPUTS, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_the_same_answers_give_the_same_bytes(file: Path) -> None:
    written = []
    for order in (("a", "b"), ("b", "a")):
        answers.write(dict.fromkeys(order, OUTPUTS))
        written.append(file.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(
    "changed",
    [
        Case("row", "Tile-1", [np.ones(3, np.float16)], {"axis": 0}),
        Case("row", "Tile-1", [np.full(3, 2, np.float32)], {"axis": 0}),
        Case("row", "Tile-1", [np.ones((3, 1), np.float32)], {"axis": 0}),
        Case("row", "Tile-1", [np.ones(3, np.float32)], {"axis": 1}),
        Case("row", "Tile-1", [np.ones(3, np.float32)], {"axis": 0}, how="core"),
        Case("row", "Add-1", [np.ones(3, np.float32)], {"axis": 0}),
    ],
)
def test_a_changed_case_has_no_answer(changed: Case, file: Path) -> None:
    answers.write({answers.key(ROW): OUTPUTS})
    assert ROW in Answers()
    assert changed not in Answers()


def test_another_version_of_openvino_has_no_answers(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers.write({answers.key(ROW): OUTPUTS})
    monkeypatch.setattr(answers, "version", lambda package: "2026.2.0")
    assert ROW not in Answers()


def _cases() -> list[Case]:
    return [case for case in tables.cases() if case.expected is None]


@pytest.mark.slow
def test_every_case_has_an_answer() -> None:
    """`python tests/answers.py` stores those that are missing, and drops those that no case asks for."""
    assert {answers.key(case) for case in _cases()} == set(Answers())


@pytest.mark.slow
def test_openvino_still_gives_them(oracle: Oracle) -> None:
    stored = Answers()
    for case in _cases():
        expected = stored.get(case)
        assert expected is not None, case.id
        for got, want in zip(ask(case, oracle), expected, strict=True):
            compare(got, want, case)
