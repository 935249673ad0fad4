"""The processes and the progress bar of commands that do many things."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from xml.parsers import expat

import click
from rich.console import Console

from irrun.base.text import human
from irrun.checking.reports import FORMATS
from irrun.cli import _terminal
from irrun.files import cache_folder
from irrun.fleet.cache import Cache
from irrun.fleet.cluster import Cluster, connected
from irrun.fleet.workers import Processes, Workers, cpus

__all__ = [
    "SUMMARIZED", "advancing", "cache_of", "cache_option", "dask_option", "jobs_option", "model_files", "placed",
    "print_summary", "tree_jobs_option", "tree_workers", "workers_of",
]  # fmt: skip

T = TypeVar("T")

jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1), help="Number of processes, of one thread each. [default: one for each CPU]"
)


_FEW: Final = 32
"""Up to this many models, starting processes takes longer than the work itself."""

tree_jobs_option = click.option(
    "-j", "--jobs", type=click.IntRange(1),
    help=f"Number of processes. [default: 1, or one for each CPU if there are more than {_FEW} files to do]",
)  # fmt: skip

cache_option = click.option(
    "--cache/--no-cache", "cached", default=True, show_default=True,
    help="Skip models that are known, if there are several. IRRUN_CACHE_DIR is the folder of what is known.",
)  # fmt: skip


def cache_of(wanted: bool, files: Sequence[str]) -> Cache | None:
    """Return the cache for several files, if there is one."""
    folder = cache_folder() if wanted and len(files) > 1 and "-" not in files else None
    return None if folder is None else Cache(folder)


def tree_workers(stack: ExitStack, jobs: int | None, address: str | None, count: int) -> Workers | None:
    """Return the processes for ``count`` models, which ``stack`` closes; None if this one does them."""
    if address is not None:
        return stack.enter_context(workers_of(jobs, address))
    wanted = min(jobs or (cpus() if count > _FEW else 1), count)
    return Processes(wanted) if wanted > 1 else None


def placed(files: Sequence[str], address: str | None) -> list[str]:
    """Return paths as the workers need them: absolute for those of a cluster elsewhere."""
    return [os.path.abspath(f) for f in files] if address not in (None, "local") else list(files)


SUMMARIZED: Final = ("full", "concise", *(form for form in FORMATS if form in ("json", "sarif", "junit")))
"""The formats of reports that can hold a summary."""


def print_summary(out: Console, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a row for each model, and one for all."""
    columns = ("model", "status", "s", "peak memory", "errors", "warnings", "from")
    cells = [
        (
            row["file"], row["status"], f"{row['seconds']:.3f}",
            "" if row["peak_memory"] is None else human(row["peak_memory"]),
            str(row["errors"]), str(row["warnings"]), "cache" if row["cached"] else "",
        )
        for row in rows
    ]  # fmt: skip
    _terminal.print_table(out, columns, cells, right=columns[2:6])


dask_option = click.option(
    "--dask", "address", metavar="ADDRESS",
    help="Use the Dask cluster whose scheduler has this address, or `local` for one on this machine. Its workers must "
    "see the same files.",
)  # fmt: skip


@contextmanager
def workers_of(jobs: int | None, address: str | None) -> Iterator[Workers]:
    """Open the workers that the options name. Raises EngineError (IR702) if a Dask cluster cannot be reached."""
    if address is None:
        yield Processes(jobs or cpus())
        return
    client, cluster = connected(address, jobs or cpus())
    try:
        yield Cluster(client)
    finally:
        client.close()
        if cluster is not None:
            cluster.close()


def advancing(items: Iterable[tuple[int, T]], total: int, what: str, err: Console) -> Iterator[T]:
    """Yield the second of each pair, and show how many of ``total`` are done, at which rate, and the time left.

    The first of a pair is how many were done. The bar appears on a terminal, after a second.
    """
    if not err.is_interactive or total < 2:
        yield from (item for _, item in items)
        return
    from rich import progress as bars

    since = time.monotonic()
    progress = bars.Progress(
        bars.TextColumn("{task.description}"), bars.BarColumn(), bars.TaskProgressColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[rate]}"), bars.TimeRemainingColumn(), console=err, transient=True,
    )  # fmt: skip
    bar = progress.add_task(what, total=total, rate="")
    count = 0
    try:
        for advance, item in items:
            count += advance
            took = time.monotonic() - since
            progress.update(bar, advance=advance, rate=f"{count / took:.1f}/s" if took else "")
            if took > 1:
                progress.start()
            yield item
    finally:
        progress.stop()


# ---------------------------------------------------------------------------------------------
# find the files


def model_files(paths: Iterable[str], *, folders: bool = False) -> list[str]:
    """Return the IR files that paths mean: files, folders and globs. Raises click.UsageError if there are none.

    With ``folders``, the folders of language models that are found in a folder follow its files.
    """
    return list(dict.fromkeys(file for path in paths for file in _files(path, folders=folders)))


def _files(path: str, *, folders: bool) -> list[str]:
    """Return the files that a path means. A missing file is among them, so that reading it reports the error."""
    if Path(path).is_dir():
        models = sorted(str(p) for p in Path(path).rglob("*.xml") if p.is_file() and _may_be_ir(p))
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


_BLOCK: Final = 1 << 10
"""Bytes to read at a time. The root element is nearly always in the first block."""


def _may_be_ir(path: Path) -> bool:
    """Return whether the root element is <net>, or is unknown because the file cannot be read."""
    root: list[str] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda tag, _: root.append(tag)
    try:
        with path.open("rb", buffering=0) as file:
            while not root and (block := file.read(_BLOCK)):
                parser.Parse(block, False)
    except (OSError, expat.ExpatError, ValueError, LookupError):
        pass  # the file is reported when it is checked
    return not root or root[0].lower() == "net"
