"""Follow a walk, a page ``docs/add-*.md``: apply its blocks to a copy of the tree, and list the commands that it runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from page_blocks import Block
from shell_commands import commands

__all__ = ["apply", "follow", "patched", "runs"]


def follow(walk: Iterable[Block], tree: Path) -> Iterator[Block]:
    """Apply the blocks of a walk in order, and yield each of the others at its place."""
    for block in walk:
        if block.file is None:
            yield block
        else:
            apply(block, tree)


def apply(block: Block, tree: Path) -> None:
    """Create the file that a block names, or change it if the block is a ``diff``."""
    assert block.file is not None
    path = tree / block.file
    if block.language == "diff":
        path.write_text(patched(path.read_text("utf-8"), block.code), "utf-8", newline="\n")
    else:
        assert not path.exists(), f"{block}: {block.file} exists already; a diff would change it"
        path.write_text(block.code, "utf-8", newline="\n")


def patched(text: str, diff: str) -> str:
    """Apply a diff: lines that begin with a space or ``-`` are in ``text``, lines with ``+`` are added.

    A line ``@@`` separates places. The lines of each place must occur in ``text`` exactly once.
    """
    for place in diff.split("@@\n"):
        lines = [line if line.strip() else " \n" for line in place.splitlines(keepends=True)]
        assert all(line[0] in " -+" for line in lines), f"a line begins with none of space, - and +:\n{place}"
        before = "".join(line[1:] for line in lines if line[0] != "+")
        after = "".join(line[1:] for line in lines if line[0] != "-")
        count = f"\n{text}".count(f"\n{before}")
        assert count == 1, f"the lines of this place occur {count} times:\n{place}"
        text = f"\n{text}".replace(f"\n{before}", f"\n{after}")[1:]
    return text


def runs(block: Block) -> list[list[str]]:
    """Return the commands of a ``sh`` block, without the word ``python`` at the beginning of each."""
    found = list(commands(block.code)) if block.language == "sh" else []
    assert all(words[0] == "python" for words in found), f"{block}: a walk runs python"
    return [words[1:] for words in found]
