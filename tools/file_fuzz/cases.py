"""The cases of a campaign: how the case of a number is run and stored."""

from __future__ import annotations

import importlib
import shutil
import traceback
from collections import Counter
from pathlib import Path
from typing import Final, Protocol

__all__ = ["SECONDS", "Cases", "cases_of", "emptied", "signature"]


SECONDS: Final = 2.0
"""The most seconds of CPU time of a mutant, for each 100 KB of its file."""


class Cases(Protocol):
    """The cases of one fuzzer. A case is always the same for the same seed and number."""

    bounded: bool
    """Whether a case has a limit of memory."""

    def warm_up(self) -> None:
        """Import what the cases need, so that it does not count as the time and memory of the first."""
        ...

    def run(self, number: int) -> Counter[str]:
        """Run a case and return its outcomes. Raises an exception for a failure."""
        ...

    def seconds(self, number: int) -> float:
        """Return the most seconds of CPU time that a case may take."""
        ...

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        """Store a case in a folder: reduced, if ``failed`` is how it fails, else as it is."""
        ...


_CLASSES: Final = {
    "mutants": ("file_fuzz.mutants", "Mutants"),
    "faults": ("file_fuzz.faults", "Faults"),
}


def cases_of(kind: str, seed: str, folder: Path, stored: Path) -> Cases:
    """Return the cases of a fuzzer. ``folder`` takes files, and ``stored`` is the file that keeps the corpus."""
    module, name = _CLASSES[kind]
    return getattr(importlib.import_module(module), name).of(seed, folder, stored)


def signature(error: BaseException) -> str:
    """Return what failures of one cause have in common: the exception, and the innermost line of irrun."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/irrun/" in f.filename and "/tools/" not in f.filename]
    place = f" at {own[-1].filename.rpartition('/irrun/')[2]}:{own[-1].name}" if own else ""
    text = "".join(c for c in str(error).split("\n")[0][:60] if not c.isdigit())
    return f"{type(error).__name__}{place}: {text}"


def emptied(folder: Path) -> Path:
    """Return the folder, new and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
