"""Broken examples that say themselves what irrun finds in them: a comment at the end of a line names the code.

``<!-- IR401 -->`` marks a finding on its own line; in other languages the comment is ``# IR401`` or ``{# IR401 #}``.
``<!-- IR506 of the file -->`` marks a finding without a line, and ``<!-- IR001 at 9:6 -->`` one at a line and column,
wherever the comment is. Examples are the files of ``tests/checking/invalid`` and those of ``irrun/explanations``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from places import INVALID, ROOT

__all__ = ["BROKEN", "EXPLANATIONS", "FILES", "Block", "BrokenModel", "Explanation", "Mark", "marks"]

FILES: Final = sorted(INVALID.glob("*.xml"))
"""Broken models, each with one fault."""


@dataclass(frozen=True, order=True)
class Mark:
    """A finding that must appear: its code, and its line and column if the mark says them."""

    code: str
    line: int | None
    column: int | None = None


def marks(text: str) -> list[Mark]:
    """Return the marks of a text, in order."""
    found: list[Mark] = []
    for number, line in enumerate(text.split("\n"), 1):
        for code, of_file, place in re.findall(
            r"(?:<!--|#) (IR\d{3})( of the file)?(?: at (\d+:\d+))?(?= -->| #\}|$)", line
        ):
            at = [int(part) for part in place.split(":")] if place else [number, None]
            found.append(Mark(code, None) if of_file else Mark(code, *at))
    return found


# ---------------------------------------------------------------------------------------------
# the pages of `irrun explain`


@dataclass(frozen=True)
class Block:
    """A fenced block of an explanation. ``file`` is the file that holds it; None if the block is run."""

    language: str
    file: str | None
    code: str

    @property
    def marks(self) -> list[Mark]:
        return marks(self.code)


@dataclass(frozen=True)
class Explanation:
    """A page of ``irrun/explanations``: the blocks of its wrong example and of its right one, and those of both."""

    code: str
    prose: str
    """What stands before the first block or heading."""
    shared: tuple[Block, ...]
    wrong: tuple[Block, ...]
    right: tuple[Block, ...]

    @staticmethod
    def read(path: Path) -> Explanation:
        match = re.fullmatch(r"(.+?)\n## Wrong\n(.+?)\n## Right\n(.+)", path.read_text("utf-8"), re.DOTALL)
        assert match, "a page has the headings ## Wrong and ## Right"
        return Explanation(path.stem, match[1].partition("```")[0], *map(_blocks, match.groups()))


def _blocks(text: str) -> tuple[Block, ...]:
    """Return the fenced blocks of a text. ``xml`` is the file net.xml if no other is named."""
    found = re.findall(r"```(\w+) ?(\S*)\n(.*?)```", text, re.DOTALL)
    return tuple(
        Block(language, file or ("net.xml" if language == "xml" else None), code.removesuffix("\n"))
        for language, file, code in found
    )


EXPLANATIONS: Final = [*map(Explanation.read, sorted((ROOT / "irrun" / "explanations").glob("*.md")))]


# ---------------------------------------------------------------------------------------------
# models


@dataclass(frozen=True)
class BrokenModel:
    """A model with a fault. ``path`` is None if it is the whole wrong example of an explanation."""

    name: str
    data: bytes
    path: Path | None

    @property
    def marks(self) -> list[Mark]:
        """What is expected. An empty file cannot say it."""
        return marks(self.data.decode("utf-8", "replace")) if self.data else [Mark("IR001", 1, 1)]

    @property
    def codes(self) -> set[str]:
        return {mark.code for mark in self.marks}

    def place(self, folder: Path) -> Path:
        """Return the path of the model. One of an explanation is written to ``folder``."""
        if self.path is not None:
            return self.path
        path = folder / f"{self.name}.xml"
        path.write_bytes(self.data)
        return path


def _of_explanations() -> list[BrokenModel]:
    """Return the wrong examples that consist of one model."""
    single = [page for page in EXPLANATIONS if not page.shared and [block.language for block in page.wrong] == ["xml"]]
    return [BrokenModel(page.code, page.wrong[0].code.encode(), None) for page in single]


BROKEN: Final = [*(BrokenModel(path.stem, path.read_bytes(), path) for path in FILES), *_of_explanations()]
