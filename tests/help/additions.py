"""The first table of CONTRIBUTING.md: the files that each addition takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from copies import changed
from places import ROOT

__all__ = ["Row", "assert_takes", "rows"]

_HEAD: Final = "| you add | you write | a program writes | how |\n| --- | --- | --- | --- |\n"


@dataclass(frozen=True, slots=True)
class Row:
    """What somebody who adds something writes, and what programs write then. Paths have placeholders: ``<name>``."""

    by_hand: frozenset[str]
    made: frozenset[str]
    how: str
    """Where it is explained, in Markdown."""


def rows() -> dict[str, Row]:
    """Return the rows of the table by their first cell."""
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    table = page.partition(_HEAD)[2].partition("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {what: Row(_paths(by_hand), _paths(made), how) for what, by_hand, made, how in cells}


def _paths(cell: str) -> frozenset[str]:
    """Return the paths in a cell: what has a slash and no space, between backticks."""
    return frozenset(re.findall(r"`([^` ]+/[^` ]+)`", cell))


def assert_takes(tree: Path, what: str, names: Mapping[str, str], *, made: bool = False) -> None:
    """Fail unless a copy differs from the project in exactly the files that the row ``what`` names.

    ``names`` replace the placeholders. With ``made``, the programs of the row have run.
    """
    row = rows()[what]
    expected = row.by_hand | row.made if made else row.by_hand
    named = {re.sub("<(.+?)>", lambda m: names[m[1]], path) for path in expected}
    found = changed(tree)
    assert found == named, f"not in the row: {sorted(found - named)}; not changed: {sorted(named - found)}"
