"""The fenced blocks of pages, and what the commands in them print."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import warm
from shell_commands import ROOT

__all__ = ["TEN_MINUTES", "Block", "as_printed", "blocks", "environment", "first_ten_minutes", "session", "walks"]

TEN_MINUTES: Final = ROOT / "docs" / "first-ten-minutes.md"
"""The page whose commands are typed one after another: each finds what the one before has written."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it creates or changes, the number of its first line, and its code."""

    page: Path
    language: str
    file: str | None
    """What ``title="…"`` names, after the language."""
    line: int
    code: str
    span: tuple[int, int]
    """Where the code stands in the page, in characters."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line} {self.language}"


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in order. A block in a block, which a longer fence encloses, is code of the outer."""
    text = page.read_text("utf-8")
    assert len(re.findall(r"^ *```", text, re.MULTILINE)) % 2 == 0, "a fence is not closed"
    found = []
    for match in re.finditer(r"^( *)(`{3,})(.*)\n((?:.*\n)*?)\1\2$", text, re.MULTILINE):
        language, file = re.fullmatch(r'(.*?)(?: title="(.+)")?', match[3].strip()).groups()  # type: ignore[union-attr]
        found.append(Block(page, language, file, text.count("\n", 0, match.start(4)) + 1, match[4], match.span(4)))
    return found


def walks() -> dict[str, list[Block]]:
    """Return the blocks of each walk, by its title: a page ``docs/add-*.md``."""
    found = {}
    for name in ("operation", "kernel", "diagnostic"):
        page = ROOT / "docs" / f"add-{name}.md"
        found[page.read_text("utf-8").partition("\n")[0].removeprefix("# ")] = blocks(page)
    return found


def first_ten_minutes(folder: Path) -> Iterator[tuple[Block, str]]:
    """Type the commands of ``TEN_MINUTES`` in ``folder``, and yield each ``console`` block and what it shall show.

    The folder receives a copy of the files that the page uses. Nothing is installed.
    """
    for name in ("samples", "docs/_static"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for block in blocks(TEN_MINUTES):
        if block.language == "console":
            yield block, as_printed(block.code, folder)


def session(code: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block, and what the block shows below it."""
    assert code.startswith("$ ")
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def as_printed(code: str, folder: Path = ROOT) -> str:
    """Return a console block with what its commands print, for the copy of the project in ``folder``."""
    return "".join(f"$ {command}\n{_output(command, folder)}" for command, _ in session(code))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment for processes that import the copy of the project in ``folder``, and no other."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    return inherited | {
        "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(folder),
        "IRRUN_FAST": "0",  # a page holds without numba, and without the line that says that kernels are compiled
    }  # fmt: skip


def _output(command: str, folder: Path) -> str:
    program, *arguments = shlex.split(command)
    assert program in ("irrun", "python"), (
        f"{command}: a page shows what irrun prints, other commands stand in sh blocks"
    )
    done = warm.run(
        [sys.executable, *(["-m", "irrun"] if program == "irrun" else []), *arguments],
        cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    lines = done.stdout.decode().replace("\r\n", "\n").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)
