"""Ask installed releases of OpenVINO whether they load models, each in a process that is started again after a crash.

Answers are kept in ``FOLDER/answers``, by a digest of the model, so that a measurement can be continued.
"""

from __future__ import annotations

import hashlib
import json
import select
import subprocess
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from irrun.targets.releases import version

__all__ = ["Answer", "Wheels"]

_PROBE: Final = Path(__file__).with_name("probe.py")
_PATIENCE: Final = 20
"""Seconds that a release may take for one model. Afterwards, it counts as refused."""
_SPOILT: Final = "one instance of RegistersPool"
"""What 2022.3 says of each model with a kernel of one kind after a model whose kernel failed: a new process is asked."""
_AT_ONCE: Final = 2
"""The releases that are asked at the same time."""


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

    @property
    def ends(self) -> tuple[str, ...]:
        """The oldest release, and the last of each year."""
        last = {release[:4]: release for release in self.releases}
        return tuple(release for release in self.releases if release in {self.releases[0], *last.values()})

    def ask_all(self, models: Sequence[Path]) -> dict[str, list[Answer]]:
        """Return the answer of each installed release for each model."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(lambda release: self.ask(release, models), self.releases)
            return dict(zip(self.releases, answers))

    def ask_some(self, models: Sequence[Path], lacking: Sequence[Container[str]]) -> dict[str, list[Answer | None]]:
        """Return the answers of the releases for each model, None where a release was not asked.

        Releases that lack an operation of a model are not asked about it. Of the other ``ends``, the first and the last
        are, and all if these disagree. Where two that were asked disagree, the release in the middle between them is
        then asked, until the two are neighbours.
        """
        found: dict[str, list[Answer | None]] = {release: [None] * len(models) for release in self.releases}
        ends = [[release for release in self.ends if release not in without] for without in lacking]
        first: dict[str, list[int]] = {}
        rest: dict[str, list[int]] = {}
        for number, able in enumerate(ends):
            for release in {*able[:1], *able[-1:]}:
                first.setdefault(release, []).append(number)
        self._fill(found, models, first)
        for number, able in enumerate(ends):
            if able and _loads(found[able[0]][number]) != _loads(found[able[-1]][number]):
                for release in able[1:-1]:
                    rest.setdefault(release, []).append(number)
        self._fill(found, models, rest)
        while wanted := self._between(found, len(models)):
            self._fill(found, models, wanted)
        return found

    def _fill(
        self,
        found: Mapping[str, list[Answer | None]],
        models: Sequence[Path],
        wanted: Mapping[str, Sequence[int]],
    ) -> None:
        """Ask about the ``wanted`` models of each release, by number, several releases at once."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            asked = pool.map(lambda item: self.ask(item[0], [models[n] for n in item[1]]), wanted.items())
            for (release, numbers), answers in zip(wanted.items(), asked):
                for number, answer in zip(numbers, answers):
                    found[release][number] = answer

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
            answer = _answer(process, model)
            if _SPOILT in answer.message:
                process.communicate()
                process = self._start(release)
                answer = _answer(process, model)
            yield answer
            if answer.stage == "crash":
                process = None
        if process is not None:
            process.communicate()

    def _start(self, release: str) -> subprocess.Popen[str]:
        command = [str(self.pythons[release]), str(_PROBE)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, bufsize=1)


def _answer(process: subprocess.Popen[str], model: Path) -> Answer:
    """Ask a process about a model. If it ends or runs out of time, the answer is a crash."""
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
        return Answer(*json.loads(line))
    process.communicate()
    return Answer("crash", str(process.returncode))


def _name(wheel: str) -> str:
    return wheel.removesuffix(".0")


def _digest(model: Path) -> str:
    weights = model.with_suffix(".bin")
    return hashlib.sha256(model.read_bytes() + (weights.read_bytes() if weights.exists() else b"")).hexdigest()[:24]


def _loads(answer: Answer | None) -> bool:
    return answer is not None and not answer.stage
