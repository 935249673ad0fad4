"""Refusal of shapes that cannot be broadcast."""

from typing import NoReturn

from irrun.opdef import Site
from irrun.opdef.columns import clashing, in_columns
from irrun.types import PartialShape


def refuse(at: Site, label: str, message: str, names: tuple[str, str], a: PartialShape, b: PartialShape) -> NoReturn:
    """Refuse two shapes of known rank, with notes that show where they clash."""
    wrong = clashing(tuple(a), tuple(b))
    drawn = in_columns({names[0]: tuple(a), names[1]: tuple(b)}, wrong)
    at.refuse(label, message, notes=drawn, dims=tuple(d for pair in wrong.values() for d in pair))
