"""Shapes below each other, as the notes of a diagnostic show them."""

from __future__ import annotations

from irrun.opdef.columns import clashing, elements, in_columns
from irrun.types import Dim

SHAPES = {"a": [Dim(8), Dim(3), Dim(32)], "long": [Dim(4), Dim(32)], "s": []}


def test_shapes_are_aligned_at_their_last_dims() -> None:
    assert in_columns(SHAPES, {-2}) == (
        "a     [8, 3, 32]",
        "long     [4, 32]",
        "s               []",
        "          ^",
    )


def test_which_columns_clash() -> None:
    assert clashing([Dim(8), Dim(3), Dim(32)], [Dim(4), Dim(32)]) == {-2: (Dim(3), Dim(4))}
    assert clashing([Dim(1), Dim.unknown(), Dim(2)], [Dim(5), Dim(7), Dim(3)]) == {-1: (Dim(2), Dim(3))}
    assert clashing([Dim(8)], []) == {}


def test_numbers_of_elements() -> None:
    assert elements(SHAPES) == ("a     8 * 3 * 32 = 768", "long  4 * 32     = 128", "s     1          = 1")
