"""Ask installed releases of OpenVINO whether they load models, each in a process that is started again after a crash.

Answers are kept in ``FOLDER/answers``, by a digest of the model, so that a measurement can be continued.
"""

from __future__ import annotations

import hashlib
import json
import select
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from irrun.targets.releases import version

__all__ = ["Answer", "Wheels"]

_PROBE: Final = Path(__file__).with_name("probe.py")
_PATIENCE: Final = 60
"""Seconds that a release may take for one model. Afterwards, it counts as refused."""


class Answer(NamedTuple):
    """What a release said of a model: empty texts if it loads, or the stage that failed and the end of the message."""

    stage: str
    message: str


class Wheels:
    """The releases that are installed in a folder: ``FOLDER/2024.6.0/bin/python`` and others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = [path.parents[1].name for path in folder.glob("*/bin/python") if path.parents[1].name[:2] == "20"]
        self.pythons = {_name(v): folder / v / "bin" / "python" for v in sorted(found, key=version)}
        """The program of each release, such as ``2024.6``, from the oldest to the newest."""
        self.releases = tuple(self.pythons)
        (folder / "answers").mkdir(exist_ok=True)

    def ask(self, release: str, models: Sequence[Path]) -> list[Answer]:
        """Return the answer of a release for each model."""
        store = self.folder / "answers" / f"{release}.jsonl"
        known: dict[str, Answer] = {}
        if store.exists():
            known = {digest: Answer(*rest) for digest, *rest in map(json.loads, store.read_text().splitlines())}
        digests = [_digest(model) for model in models]
        open = [(digest, model) for digest, model in zip(digests, models) if digest not in known]
        with store.open("a", buffering=1) as file:
            for answer, (digest, _) in zip(self._probe(release, [model for _, model in open]), open):
                known[digest] = answer
                file.write(json.dumps([digest, *answer]) + "\n")
        return [known[digest] for digest in digests]

    def ask_all(self, models: Sequence[Path], *, between: bool) -> dict[str, list[Answer | None]]:
        """Return the answers of the releases for each model, None where a release was not asked.

        Every model goes to the oldest release and to the last of each year. With ``between``, where two that were asked
        disagree, the release in the middle between them is asked, until the two are neighbours.
        """
        last_of_year = {release[:4]: release for release in self.releases}
        found: dict[str, list[Answer | None]] = {release: [None] * len(models) for release in self.releases}
        wanted = {release: [*range(len(models))] for release in {self.releases[0], *last_of_year.values()}}
        while wanted:
            for release, numbers in wanted.items():
                for number, answer in zip(numbers, self.ask(release, [models[n] for n in numbers])):
                    found[release][number] = answer
            wanted = self._between(found, len(models)) if between else {}
        return found

    def _between(self, found: Mapping[str, Sequence[Answer | None]], count: int) -> dict[str, list[int]]:
        """Return the models to ask about, by the release in the middle between two that disagree."""
        wanted: dict[str, list[int]] = {}
        for number in range(count):
            known = [at for at, release in enumerate(self.releases) if found[release][number] is not None]
            for first, last in pairwise(known):
                ends = [found[self.releases[at]][number] for at in (first, last)]
                if last - first > 1 and _loads(ends[0]) != _loads(ends[1]):
                    wanted.setdefault(self.releases[(first + last) // 2], []).append(number)
        return wanted

    def _probe(self, release: str, models: Sequence[Path]) -> Iterator[Answer]:
        process: subprocess.Popen[str] | None = None
        for model in models:
            process = process or self._start(release)
            assert process.stdin is not None
            assert process.stdout is not None
            line = ""
            try:
                process.stdin.write(f"{model.resolve()}\n")
                process.stdin.flush()
                if select.select([process.stdout], [], [], _PATIENCE)[0]:
                    line = process.stdout.readline()
                else:
                    process.kill()
            except BrokenPipeError:
                pass
            if line:
                yield Answer(*json.loads(line))
            else:
                process.communicate()
                yield Answer("crash", str(process.returncode))
                process = None
        if process is not None:
            process.communicate()

    def _start(self, release: str) -> subprocess.Popen[str]:
        command = [str(self.pythons[release]), str(_PROBE)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1)


def _name(wheel: str) -> str:
    return wheel.removesuffix(".0")


def _digest(model: Path) -> str:
    weights = model.with_suffix(".bin")
    return hashlib.sha256(model.read_bytes() + (weights.read_bytes() if weights.exists() else b"")).hexdigest()[:24]


def _loads(answer: Answer | None) -> bool:
    return answer is not None and not answer.stage
