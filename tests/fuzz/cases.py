"""The cases of a campaign: how the case of a number is made, run, stored and reduced."""

from __future__ import annotations

import pickle
import random
import shutil
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

import irrun
from fuzz.corpus import Document, corpus
from fuzz.differences import differences
from fuzz.exercise import exercise
from fuzz.mutation import mutant
from fuzz.targets import graph

__all__ = ["KINDS", "Cases", "signature"]


class Cases(Protocol):
    """The cases of one fuzzer. A case is always the same for the same seed and number."""

    def run(self, number: int) -> Counter[str]:
        """Run a case and return its outcomes. Raises an exception for a failure."""
        ...

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        """Store a case in a folder: reduced, if ``failed`` is how it fails, else as it is."""
        ...


@dataclass(frozen=True)
class Mutants:
    """Mutants of documents. ``folder`` takes the file of the case that runs."""

    documents: list[Document]
    seed: int
    folder: Path

    @classmethod
    def of(cls, seed: int, folder: Path, stored: Path) -> Mutants:
        """Return the mutants of the corpus, which ``stored`` keeps for the other processes of a campaign."""
        if not stored.exists():
            part = folder / "corpus.part"
            part.write_bytes(pickle.dumps(corpus()))
            part.replace(stored)
        return cls(pickle.loads(stored.read_bytes()), seed, folder)

    def run(self, number: int) -> Counter[str]:
        document = mutant(self.documents, self.seed, number)
        return Counter([self._outcome(document, number)])

    def _outcome(self, document: Document, number: int) -> str:
        path = self._write(document, self.folder, "mutant")
        return exercise(path, random.Random(number))

    def _write(self, document: Document, folder: Path, name: str) -> Path:
        """Write a document. The .bin is a new file each time: a run notices that a mapped one is written to."""
        path = folder / f"{name}{document.suffix}"
        path.write_bytes(document.text)
        weights = path.with_suffix(".bin")
        weights.unlink(missing_ok=True)
        if document.bin is not None:
            weights.write_bytes(document.bin)
        return path

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        document = mutant(self.documents, self.seed, number)
        self._write(document, folder, "mutant")
        (folder / "origin.txt").write_text(f"{document.origin}\n")
        if failed is None:
            return
        wanted = signature(failed)

        def fails(text: bytes) -> bool:
            try:
                self._outcome(replace(document, text=text), number)
            except Exception as error:
                return signature(error) == wanted
            return False

        self._write(replace(document, text=_reduced(document.text, fails)), folder, "reduced")


@dataclass(frozen=True)
class Graphs:
    """Random graphs, run in the default mode and in the exact one."""

    seed: int

    @classmethod
    def of(cls, seed: int, folder: Path, stored: Path) -> Graphs:
        return cls(seed)

    def run(self, number: int) -> Counter[str]:
        return Counter(["equal"]) + differences(graph(self.seed, number))

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        """Store the model and the inputs of each call, with as few layers as still fail."""
        chosen = graph(self.seed, number)
        for layers in range(1, 12) if failed is not None and number % 2 == 0 else ():
            fewer = graph(self.seed, number, layers)
            try:
                differences(fewer)
            except Exception as error:
                if type(error) is type(failed):
                    chosen = fewer
                    break
        irrun.save_model(chosen.model, folder / "graph.xml")
        for call, feeds in enumerate(chosen.feeds):
            arrays = {f"in{n}": array for n, array in enumerate(feeds)}
            np.savez(folder / f"call{call + 1}.npz", allow_pickle=False, **arrays)


KINDS: dict[str, Callable[[int, Path, Path], Cases]] = {"mutants": Mutants.of, "graphs": Graphs.of}


def signature(error: BaseException) -> str:
    """Return what failures of one cause have in common: the exception, and the innermost line of irrun."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "/irrun/" in f.filename and "/tests/" not in f.filename]
    place = f" at {own[-1].filename.rpartition('/irrun/')[2]}:{own[-1].name}" if own else ""
    text = "".join(c for c in str(error).split("\n")[0][:60] if not c.isdigit())
    return f"{type(error).__name__}{place}: {text}"


_TRIALS = 150
"""The most times that a failing mutant is run to reduce it."""


def _reduced(text: bytes, fails: Callable[[bytes], bool]) -> bytes:
    """Return as few lines of the text as still fail, by removing ever smaller runs of lines."""
    lines, trials = text.split(b"\n"), 0
    size = max(1, len(lines) // 2)
    while size and trials < _TRIALS:
        start = 0
        while start < len(lines) and trials < _TRIALS:
            fewer = lines[:start] + lines[start + size :]
            trials += 1
            if fewer and fails(b"\n".join(fewer)):
                lines = fewer
            else:
                start += size
        size //= 2
    return b"\n".join(lines)


def emptied(folder: Path) -> Path:
    """Return the folder, new and empty."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
