"""Look for a planted fault: judge the graphs of campaigns with the faulty irrun, and with the unchanged one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Final, Self

from irrun.fuzz import Disagreement, described, forms
from irrun.fuzz.known import NOT_REPEATED
from mutants import Tree
from planted_faults.graphs import grown, load, save

__all__ = ["FAULTS", "Campaigns", "Fault", "Judges", "Outcome", "Round", "judge_number", "searched"]


@dataclass(frozen=True)
class Fault:
    """A fault: ``only`` says where it shows, ``fault`` what it is. For the other fields, see ``faults.toml``."""

    name: str
    only: str
    fault: str
    file: str
    before: str
    after: str
    where: str = ""
    beside: bool = False

    @property
    def is_compiled(self) -> bool:
        """Whether only compiled kernels show the fault."""
        return self.file.startswith("irrun/fast/")

    def planted(self, source: str) -> str:
        """Return the text of the module with the fault. Raises SystemExit if the module does not have ``before``."""
        before, after = self.before.removeprefix("\n"), self.after.removeprefix("\n")
        if before not in source:
            raise SystemExit(f"{self.name}: {self.file} does not have the text that the fault replaces")
        return source.replace(before, after)


FAULTS: Final[Mapping[str, Fault]] = {
    name: Fault(name, **row)
    for name, row in tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True)
class Round:
    """A campaign: ``irrun fuzz --seed SEED``, with compiled kernels for an instruction set, or without."""

    seed: int
    form: str = ""

    @property
    def variables(self) -> Mapping[str, str]:
        """The environment variables of the campaign."""
        return forms()[self.form] if self.form else {}

    def command(self, side: str, number: int) -> str:
        """Return the command that judges one model of the campaign."""
        compiled = f" --compiled {self.form}" if self.form else ""
        return f"irrun fuzz --against '{side}' --seed {self.seed}{compiled} --model {number}"


@dataclass(frozen=True)
class Campaigns:
    """Campaigns of ``count`` models each against ``side``. Their graphs and machine code are kept in ``folder``."""

    side: str
    count: int
    rounds: Sequence[Round]
    folder: Path
    controls: dict[tuple[Round, int], dict[str, Any]] = field(default_factory=dict)
    """The verdicts of the unchanged irrun."""
    texts: dict[int, Mapping[int, str]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def file(self, seed: int) -> Path:
        """Return the file of the graphs of a seed, which are grown if it is not there."""
        path = self.folder / f"{seed}-{self.count}.pickle"
        with self.lock:
            if not path.exists():
                made = path.with_suffix(".new")
                save(grown(seed, self.count), made)
                made.rename(path)
        return path

    def of(self, fault: Fault) -> Iterator[tuple[Round, list[int]]]:
        """Yield each campaign that may show a fault, with the numbers of the models that may."""
        for round in self.rounds:
            if fault.is_compiled and not round.form:
                continue
            texts = self.described(round.seed)
            yield round, [number for number, text in texts.items() if re.search(fault.where, text)]

    def described(self, seed: int) -> Mapping[int, str]:
        """Return the descriptions of the graphs of a seed that have outputs."""
        if seed not in self.texts:
            nothing = Disagreement("", "", "")
            graphs = load(self.file(seed)).items()
            self.texts[seed] = {number: described(graph, nothing) for number, graph in graphs if graph.results}
        return self.texts[seed]


@dataclass
class Judges:
    """A process that judges the graphs of a campaign with the irrun of a tree; it is started when it is first asked."""

    tree: Tree
    campaigns: Campaigns
    round: Round

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @cached_property
    def process(self) -> subprocess.Popen[str]:
        root, campaigns = self.tree.root, self.campaigns
        variables = {"NUMBA_CACHE_DIR": str(campaigns.folder / "kernels"), **self.round.variables}
        path = f"{root}:{root / 'tools'}"
        process = subprocess.Popen(
            [sys.executable, "-m", "planted_faults.worker", str(campaigns.file(self.round.seed)),
             str(self.round.seed), campaigns.side],
            cwd=self.tree.home, env={**self.tree.environment(**variables), "PYTHONPATH": path},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        where = json.loads(process.stdout.readline())
        if not Path(where).is_relative_to(root):
            raise SystemExit(f"the process has imported {where}, not the copy in {root}")
        return process

    def judge(self, number: int) -> dict[str, Any]:
        """Return the verdict on a graph; its outcome is ``died`` if the process ends."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        print(number, file=process.stdin, flush=True)
        answer = process.stdout.readline()
        if not answer:
            self.end()
            return {"outcome": "died", "explanations": [], "signature": "died", "line": "the process of irrun ended"}
        return json.loads(answer)

    def end(self) -> None:
        """End the process, if it runs."""
        process = self.__dict__.pop("process", None)
        if process is not None:
            process.communicate()


@dataclass
class Outcome:
    """What became of a fault: the model that shows it, and the finding about it; or the explanations that hid it."""

    fault: Fault
    round: Round | None = None
    number: int = 0
    finding: str = ""
    judged: int = 0
    """The models that were judged."""
    excused: Counter[str] = field(default_factory=Counter)
    """The models in which an explanation hid the fault."""
    places: list[tuple[int, int]] = field(default_factory=list)
    """The seeds and numbers of these models."""

    @property
    def verdict(self) -> str:
        return "found" if self.finding else "excused" if self.excused else "not found"


def searched(fault: Fault, campaigns: Campaigns, tree: Tree, control: Tree) -> Outcome:
    """Plant a fault into a tree, and judge graphs until one shows it. The tree is then as before."""
    path = tree.root / fault.file
    source = path.read_bytes()
    tree.write(path, fault.planted(source.decode()).encode())
    outcome = Outcome(fault)
    try:
        for round, numbers in campaigns.of(fault):
            with Judges(tree, campaigns, round) as faulty, Judges(control, campaigns, round) as sound:
                for number in numbers:
                    if judge_number(outcome, number, faulty, sound):
                        outcome.round, outcome.number = round, number
                        return outcome
    finally:
        tree.write(path, source)
    return outcome


def judge_number(outcome: Outcome, number: int, faulty: Judges, sound: Judges) -> bool:
    """Judge a graph, and return whether it shows the fault: again in a new process, and not without the fault.

    Both are judged again in new processes, because an engine may crash for what it did before.
    """
    controls, key = faulty.campaigns.controls, (faulty.round, number)

    def control() -> dict[str, Any]:
        if key not in controls:
            controls[key] = sound.judge(number)
        return controls[key]

    if outcome.fault.beside and not control()["explanations"]:
        return False
    outcome.judged += 1
    verdict = faulty.judge(number)
    where = f"{outcome.fault.name}: seed {faulty.round.seed}, model {number}"
    print(f"{where}: {verdict['outcome']} {', '.join(verdict['explanations'])}", file=sys.stderr, flush=True)
    if verdict["outcome"] in ("agreed", "invalid") or verdict == control():
        return False
    hidden = _hidden(verdict, control())
    if control()["signature"] or not (verdict["signature"] or hidden):
        return False  # something else is wrong with this graph, or nothing
    faulty.end()
    sound.end()
    controls[key], again = sound.judge(number), faulty.judge(number)
    if verdict["signature"]:
        if again["signature"] == verdict["signature"] and not control()["signature"]:
            outcome.finding = f"{verdict['signature']}\n{verdict['line']}"
        return bool(outcome.finding)
    hidden &= _hidden(again, control())
    outcome.excused.update(hidden)
    outcome.places += [(faulty.round.seed, number)] * len(hidden)
    return False


def _hidden(verdict: Mapping[str, Any], control: Mapping[str, Any]) -> set[str]:
    """Return the explanations that only the irrun with the fault needs."""
    return {*verdict["explanations"]} - {*control["explanations"], NOT_REPEATED}
