"""Write the table of docs/departures.md from the files in irrun/departures: `python -m tools departures`.

The text before the table is written by hand, in the page.
"""

from __future__ import annotations

from typing import Final

from irrun.departures import Departure, departures
from places import ROOT

__all__ = ["PAGE", "page"]

PAGE: Final = ROOT / "docs" / "departures.md"
_HEAD: Final = "| operation | case | OpenVINO | irrun | issue |\n| --- | --- | --- | --- | --- |\n"


def page(text: str) -> str:
    """Return a text of the page with the table of today."""
    before, head, _ = text.partition(_HEAD)
    assert head, f"{PAGE} has no line {_HEAD}"
    return before + head + "".join(map(_row, departures()))


def _row(d: Departure) -> str:
    given = d.openvino + (f", with {d.instructions}" if d.instructions else "")
    cells = (f"[{d.operation}](../irrun/departures/{d.model.name})", d.case, given, d.irrun, d.issue_link)
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8", newline="\n")
