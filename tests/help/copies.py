"""Copies of the project, to which tests add what a contributor would add."""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from page_blocks import environment
from places import ROOT

__all__ = ["changed", "copy_tree", "restore", "run", "run_commands"]

_FOLDERS: Final = ("benchmarks", "docs", "irrun", "samples", "tests", "tools")
_IGNORED: Final = shutil.ignore_patterns(".*", "_build", "generated")

_CALLS: Final = """
import sys
from irrun.cli import cli

for line in sys.argv[1].splitlines():
    assert not cli.main(line.split(), prog_name="irrun", standalone_mode=False), line
    print("---")
"""
"""Calls of the command line, in one process: it takes longer to start than all of them. Each must succeed."""


def copy_tree(to: Path) -> Path:
    """Copy the files of the project to the new folder ``to``, with the bytecode that is up to date, and return it."""
    for folder in _FOLDERS:
        shutil.copytree(ROOT / folder, to / folder, ignore=_IGNORED)
    for file in (*ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        shutil.copy2(file, to)
    return to


def changed(tree: Path) -> set[str]:
    """Return the paths of the files of a copy that the project does not have, or has with other contents."""
    return {path for path in _files(tree) if not _is_unchanged(tree, path)}


def restore(tree: Path) -> None:
    """Make a copy equal to the project again."""
    for path in changed(tree):
        if (ROOT / path).exists():
            shutil.copy2(ROOT / path, tree / path)
        elif (ROOT / path).parent.exists():
            (tree / path).unlink()
        else:
            shutil.rmtree((tree / path).parent, ignore_errors=True)


def _files(tree: Path) -> Iterator[str]:
    """Yield the files of a copy, relative to its root. Caches, whose names begin with a dot or ``__``, are left out."""
    for folder, folders, files in os.walk(tree):
        folders[:] = [name for name in folders if name[0] != "." and name != "__pycache__"]
        yield from (Path(folder, name).relative_to(tree).as_posix() for name in files if name[0] != ".")


def _is_unchanged(tree: Path, path: str) -> bool:
    return (ROOT / path).is_file() and filecmp.cmp(ROOT / path, tree / path)


def run(arguments: Sequence[str], tree: Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with a copy of the project, in its root or in a folder. Bytecode is kept for the next process."""
    inherited = {name: text for name, text in environment(tree).items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder or tree, env=inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", check=False, timeout=300,
    )  # fmt: skip


def run_commands(tree: Path, *lines: str, folder: Path) -> list[str]:
    """Run lines such as ``check model.xml`` with the irrun of a copy in a folder, and return what each prints."""
    ran = run(["-c", _CALLS, "\n".join(lines)], tree, folder)
    assert ran.returncode == 0, ran.stdout
    return ran.stdout.split("---\n")[:-1]
