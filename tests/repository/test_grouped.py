"""Tests of tables: a failure lists each row that fails, and with ``--each-row`` each row is a test."""

from __future__ import annotations

import inspect

import pytest

import grouped


def test_a_failure_lists_every_row_that_fails() -> None:
    def check(row: int) -> None:
        if row % 2:
            raise ValueError(f"{row} is odd")

    with pytest.raises(pytest.fail.Exception) as caught:
        grouped.run_rows(check, [("one", 1), ("two", 2), ("three", 3)], "tests/x.py")
    text = str(caught.value)
    assert text.startswith("2 of 3 rows fail: one, three\n\n[one]: 1\n")
    assert "1 is odd" in text
    assert "[three]: 3\n" in text
    assert text.endswith("to run one of them: python -m pytest tests/x.py --each-row -k ID")


def test_a_skip_in_a_row_skips_the_test() -> None:
    with pytest.raises(pytest.skip.Exception):
        grouped.run_rows(lambda row: pytest.skip("no such engine"), [("one", 1)])


def test_rows_of_several_arguments_beside_a_fixture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "each_row", False)
    seen: list[object] = []

    @grouped.each("a, b", [(1, 2), (3, 4)])
    def test(a: int, fixture: str, b: int) -> None:
        seen.append((a, fixture, b))

    assert list(inspect.signature(test).parameters) == ["fixture"]
    test(fixture="f")
    assert seen == [(1, "f", 2), (3, "f", 4)]


def test_each_row_is_a_test_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped, "each_row", True)

    @grouped.each("a", [1, 2])
    def test(a: int) -> None: ...

    (mark,) = test.pytestmark
    assert (mark.name, mark.args) == ("parametrize", ("a", [1, 2]))


def test_ids_that_occur_again_get_a_number() -> None:
    assert grouped.unique(["a", "b", "a"]) == ["a0", "b", "a1"]
