"""Write the stored results into the pages: ``python -m tools figures``.

A page takes its measured numbers from ``docs/results/*.json``, which the command in each of these files writes. What
stands between a line ``<!-- figures NAME -->``, or ``<!-- scoreboard -->``, and the next line ``<!-- end -->`` is made
here of those results, so that all pages show the same numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from benchmarks import tables
from irrun.conformance.scoreboard import Scoreboard
from places import ROOT

__all__ = ["BLOCKS", "PAGES", "RESULTS", "filled", "main", "stored"]

RESULTS: Final = ROOT / "docs" / "results"
PAGES: Final = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("benchmarks", "compare", "conformance", "internal-operations", "onnx-export", "targets")
    ),
]
"""The pages with figures of stored results."""

_NETWORKS: Final = ("networks-1-thread", "networks-2-threads")
_AMX: Final = ("networks-amx-1-thread", "networks-amx-2-threads")


def stored(name: str) -> dict[str, Any]:
    """Return a stored result, by the name of its file."""
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def _all(names: Iterable[str]) -> list[dict[str, Any]]:
    return [stored(name) for name in names]


BLOCKS: Final[dict[str, Callable[[], str]]] = {
    "scoreboard": lambda: Scoreboard.from_record(stored("scoreboard")).markdown(),
    "figures speed": lambda: tables.speed(_all((*_NETWORKS, *_AMX))),
    "figures means": lambda: tables.means(_all(_NETWORKS)),
    "figures means-amx": lambda: tables.means(_all(_AMX)),
    "figures networks-amx-1-thread": lambda: tables.networks(stored(_AMX[0])),
    "figures networks-amx-2-threads": lambda: tables.networks(stored(_AMX[1])),
    "figures means-avx2": lambda: tables.means([stored("networks-avx2-1-thread")]),
    "figures networks-avx2-1-thread": lambda: tables.networks(stored("networks-avx2-1-thread")),
    "figures networks-1-thread": lambda: tables.networks(stored(_NETWORKS[0])),
    "figures networks-2-threads": lambda: tables.networks(stored(_NETWORKS[1])),
    "figures budgets": lambda: tables.budgets(stored("budgets")),
    "figures compare": lambda: tables.comparisons(stored("compare")),
    "figures fleet": lambda: tables.fleet(stored("fleet")),
    "figures exports": lambda: tables.exports(stored("exports")),
    "figures served": lambda: tables.served(stored("served")),
    "figures releases": lambda: tables.releases(stored("releases")),
    "figures disagreements": lambda: tables.disagreements(stored("releases")),
}
"""What makes each block, by the text of the comment before it."""


def filled(text: str) -> str:
    """Return the text of a page with its blocks made anew. Raises KeyError for a block that nothing makes."""
    pattern = r"^<!-- ((?:figures [^\n]+)|scoreboard) -->\n.*?^<!-- end -->$"
    return re.sub(
        pattern,
        lambda match: f"<!-- {match[1]} -->\n{BLOCKS[match[1]]()}<!-- end -->",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )


def main() -> None:
    """Rewrite the pages."""
    for page in PAGES:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
