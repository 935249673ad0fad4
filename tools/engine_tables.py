"""Write the tables of the documentation that list engines: ``python -m tools engine_tables``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from irrun.engines.kinds import INNER_VALUES, KINDS, OPTIONS
from places import ROOT

__all__ = ["PAGES", "rewritten"]

PAGES: Final[Mapping[Path, tuple[str, ...]]] = {
    ROOT / "docs" / "compare.md": ("kinds", "options"),
    ROOT / "docs" / "engines.md": ("engines",),
}
"""The tables that each page has between the lines ``<!-- NAME -->`` and ``<!-- end -->``."""


def rewritten(page: Path) -> str:
    """Return the contents of a page with its tables made anew from ``irrun/engines/kinds.py``."""
    text = page.read_text("utf-8")
    for name in PAGES[page]:
        table = "".join(f"| {' | '.join(row)} |\n" for row in _rows(name))
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = before + begin + table + rest[rest.index(end) :]
    return text


def _rows(name: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a table, as Markdown, with its head."""
    if name == "kinds":
        yield from (("side", "runs"), ("---", "---"))
        yield from ((f"`{kind.example}`", kind.summary) for kind in KINDS.values())
    elif name == "options":
        yield from (("option", "engines", "value"), ("---", "---", "---"))
        for option in OPTIONS:
            running = [kind for kind in KINDS.values() if not kind.is_recording]
            users = [f"`{kind.name}`" for kind in running if option in kind.options]
            others = {kind.takes[option].words: kind for kind in running if option in kind.takes}
            words = "; ".join((OPTIONS[option].words, *(f"irrun: {own}" for own in others)))
            yield f"`{option}`", "all" if len(users) == len(running) else ", ".join(users), words
    else:
        yield "kind", "packages", "reads", "inner values", "what it does not have"
        yield ("---",) * 5
        for kind in KINDS.values():
            packages = f"`{kind.packages}`" if kind.packages else ""
            shows = "yes" if INNER_VALUES in kind.shows else "no"
            yield f"`{kind.name}`", packages, ", ".join(kind.reads), shows, kind.lacks


def main() -> None:
    """Write all pages."""
    for page in PAGES:
        page.write_text(rewritten(page), "utf-8")


if __name__ == "__main__":
    main()
