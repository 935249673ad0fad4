"""What ``irrun check`` and ``irrun run --random`` share: files in folders, processes, a cache, and a summary."""

from __future__ import annotations

import functools
import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import click
from rich.console import Console

from irrun.base.text import human
from irrun.checking.reports import FORMATS
from irrun.cli import _terminal
from irrun.cli._fleet import advancing, dask_option, placed, workers_of
from irrun.cli._options import jobs_option, together
from irrun.files import cache_folder
from irrun.fleet.cache import Cache
from irrun.fleet.trees import Check, Outcome, RandomRun, outcomes
from irrun.fleet.workers import Processes, Workers, cpus

__all__ = ["SUMMARIZED", "TreeOptions", "may_be_ir", "print_summary", "tree_options"]

_MAX_FILES_OF_ONE_PROCESS: Final = 32
"""Up to this many models, starting processes takes longer than the work itself."""

tree_options: Final = together(
    jobs_option(f"1, or one for each CPU if there are more than {_MAX_FILES_OF_ONE_PROCESS} files"),
    dask_option,
    click.option(
        "--cache/--no-cache",
        "cached",
        default=True,
        show_default=True,
        help="Skip models that are known, if there are several. IRRUN_CACHE_DIR is the folder of what is known.",
    ),
)
"""The options that fill ``TreeOptions``."""


@dataclass(frozen=True)
class TreeOptions:
    """Where many models are done: in ``jobs`` processes or on a Dask cluster, and whether a cache is used."""

    jobs: int | None
    address: str | None
    cached: bool

    def files(self, paths: Iterable[str], *, folders: bool = False) -> list[str]:
        """Return the IR files that paths mean: files, folders and globs, as the workers need their paths.

        With ``folders``, the folders of language models that are found in a folder follow its files. Raises
        click.UsageError if there are none.
        """
        files = dict.fromkeys(file for path in paths for file in _files(path, folders=folders))
        return placed([*files], self.address)

    def outcomes(self, task: Check | RandomRun, files: Sequence[str], what: str) -> Iterator[Outcome]:
        """Yield the outcome of a task for each file, in their order, and show in a bar how many are done.

        ``what`` names the task in the bar.
        """
        err = _terminal.console(stderr=True)
        folder = cache_folder() if self.cached and len(files) > 1 and "-" not in files else None
        with ExitStack() as stack:
            workers = functools.partial(self._workers, stack, 1 if "-" in files else self.jobs)
            done = outcomes(task, files, None if folder is None else Cache(folder), workers)
            yield from advancing(((1, one) for one in done), len(files), what, err)

    def _workers(self, stack: ExitStack, jobs: int | None, count: int) -> Workers | None:
        """Return the processes for ``count`` models, which ``stack`` closes; None if this one does them."""
        if self.address is not None:
            return stack.enter_context(workers_of(jobs, self.address))
        wanted = min(jobs or (cpus() if count > _MAX_FILES_OF_ONE_PROCESS else 1), count)
        return Processes(wanted) if wanted > 1 else None


SUMMARIZED: Final = ("full", "concise", *(form for form in FORMATS if form in ("json", "sarif", "junit")))
"""The formats of reports that can hold a summary."""


def print_summary(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each model, and one for all."""
    columns = ("model", "status", "s", "peak memory", "errors", "warnings", "from")
    _terminal.print_table(out, columns, [_cells(row) for row in rows], right=columns[2:6])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    memory = "" if row["peak_memory"] is None else human(row["peak_memory"])
    counts = str(row["errors"]), str(row["warnings"])
    return row["file"], row["status"], f"{row['seconds']:.3f}", memory, *counts, "cache" if row["cached"] else ""


# ---------------------------------------------------------------------------------------------
# find the files


def _files(path: str, *, folders: bool) -> list[str]:
    """Return the files that a path means. A missing file is among them, so that reading it reports the error."""
    if Path(path).is_dir():
        models = sorted(str(p) for p in Path(path).rglob("*.xml") if p.is_file() and may_be_ir(p))
        if not models:
            raise click.UsageError(f"no IR in {path}: no .xml file with <net> as its root element")
        return [*models, *_language_models(models)] if folders else models
    if glob.has_magic(path) and not Path(path).exists():
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise click.UsageError(f"no file matches {path}")
        found = (_files(match, folders=folders) if Path(match).is_dir() else [match] for match in matches)
        return [file for files in found for file in files]
    return [path]


def _language_models(models: Sequence[str]) -> list[str]:
    """Return the folders of language models among those of IR files."""
    folders = sorted({str(Path(file).parent) for file in models if Path(file).name.endswith("tokenizer.xml")})
    if not folders:
        return []
    from irrun.genai import is_folder  # imported late: most checks need none of it

    return [folder for folder in folders if is_folder(Path(folder))]


_BLOCK_BYTES: Final = 1 << 10
"""What is read at a time. The root element is nearly always in the first block."""


def may_be_ir(path: Path) -> bool:
    """Return whether the root element is <net>, or is unknown because the file cannot be read."""
    root: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: root.append(tag)
    try:
        with path.open("rb", buffering=0) as file:
            while not root and (block := file.read(_BLOCK_BYTES)):
                parser.Parse(block, False)
    except (OSError, expat.ExpatError, ValueError, LookupError):
        pass  # the file is reported when it is checked
    return not root or root[0].lower() == "net"
