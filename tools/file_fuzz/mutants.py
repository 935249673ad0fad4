"""The cases of the mutation fuzzer."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from file_fuzz.cases import SECONDS, signature
from file_fuzz.corpus import Document, corpus
from file_fuzz.exercise import exercise
from file_fuzz.mutation import mutant

__all__ = ["Mutants"]


@dataclass(frozen=True)
class Mutants:
    """Mutants of documents. ``folder`` takes the file of the case that runs."""

    documents: list[Document]
    seed: str
    folder: Path
    bounded: bool = True

    @classmethod
    def of(cls, seed: str, folder: Path, stored: Path) -> Mutants:
        """Return the mutants of the corpus, which ``stored`` keeps for the other processes of a campaign."""
        if not stored.exists():
            part = folder / "corpus.part"
            part.write_bytes(pickle.dumps(corpus()))
            part.replace(stored)
        return cls(pickle.loads(stored.read_bytes()), seed, folder)

    def warm_up(self) -> None:
        for document in self.documents[::20]:
            self._outcome(document, 0)

    def run(self, number: int) -> Counter[str]:
        document = mutant(self.documents, self.seed, number)
        return Counter([self._outcome(document, number)])

    def seconds(self, number: int) -> float:
        document = mutant(self.documents, self.seed, number)
        return SECONDS * max(1.0, len(document.text) / 100_000)

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
