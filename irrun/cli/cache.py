"""``irrun cache`` (cache): Show what irrun keeps on disk, or clear it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from irrun.base.text import counted, human, printable
from irrun.cli import _terminal
from irrun.cli._options import format_option
from irrun.files import cache_folder, kernels_folder

__all__ = ["command"]

_RESULT: Final = re.compile(r"[0-9a-f]{2}[/\\][0-9a-f]{62}\.json")
"""The path of a result in the folder of the cache: see ``irrun.fleet.cache``."""
_CODE: Final = re.compile(r"\w+\.[^/\\]+\.[0-9a-f]{16}\.[0-9a-f]{16}\.o(\.\w+\.tmp)?")
"""The name of a file of machine code: see ``irrun.fast.machine.machine_code``."""


@click.command("cache")
@click.option("--clear", is_flag=True, help="Delete the files of all caches, and no other file.")
@format_option("text", "json")
def command(clear: bool, form: str) -> None:
    """Show what irrun keeps on disk, or clear it.

    Results of `irrun check` and `irrun run --random` are in the folder that IRRUN_CACHE_DIR names, by default irrun in
    the user's folder for caches. Compiled kernels are in kernels in this folder, or in the folder that NUMBA_CACHE_DIR
    names. Any file of a cache may be deleted at any time.
    """
    caches = [_cache("results", cache_folder(), _RESULT), _cache("compiled kernels", kernels_folder(), _CODE)]
    if clear:
        for _, folder, files in caches:
            _clear(folder, files)
    if form == "json":
        rows = [
            {"name": name, "folder": folder and str(folder), "files": len(files), "bytes": sum(files.values())}
            for name, folder, files in caches
        ]
        _terminal.print_json({"caches": rows, "cleared": clear})
        return
    out = _terminal.console()
    for name, folder, files in caches:
        place = "not kept: IRRUN_CACHE_DIR is empty" if folder is None else printable(str(folder))
        done = "deleted " if clear and files else ""
        out.print(f"{name:<16}  {place}")
        out.print(f"{'':<16}  {done}{counted(len(files), 'file')}, {human(sum(files.values()))}")


def _cache(name: str, folder: Path | None, pattern: re.Pattern[str]) -> tuple[str, Path | None, dict[Path, int]]:
    """Return a cache: its name, its folder, and the size of each of its files in bytes."""
    if folder is None:
        return name, None, {}
    return (
        name,
        folder,
        {file: size for file, size in _files(folder) if pattern.fullmatch(str(file.relative_to(folder)))},
    )


def _files(folder: Path) -> Iterator[tuple[Path, int]]:
    for place, _, names in os.walk(folder):
        for name in names:
            file = Path(place, name)
            with suppress(OSError):
                yield file, file.lstat().st_size


def _clear(folder: Path | None, files: dict[Path, int]) -> None:
    """Delete files, and the folders that are empty then, the folder of the cache itself included."""
    for file in files:
        with suppress(OSError):
            file.unlink()
    if folder is not None:
        for empty in (*{file.parent for file in files if file.parent != folder}, folder):
            with suppress(OSError):
                empty.rmdir()
