"""The command line of ``python -m tools releases``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import releases
from irrun.api import load
from irrun.checking.checker import examine
from irrun.diagnostics import IrrunError
from irrun.files import write_file
from irrun.inference.bind import opset_of
from irrun.targets.facts import facts
from irrun.targets.releases import RELEASES, has_operation
from places import ROOT
from releases.judging import judge, save
from releases.learning import Row, Sample, learn
from releases.material import write_models
from releases.opsets import models as opset_models
from releases.opsets import operation_sets
from releases.probing import Answer, Wheels

_TABLE = ROOT / "irrun" / "targets" / "table.json"
_RESULTS = ROOT / "docs" / "results" / "releases.json"


def main() -> None:
    """Read the command line, and measure or judge."""
    parser = argparse.ArgumentParser("python -m tools releases", description=releases.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=16_000, help="models to learn from")
    parser.add_argument("--seed", type=int, default=7, help="which models to learn from")
    parser.add_argument("--judge", type=int, nargs=2, metavar=("COUNT", "SEED"))
    parser.add_argument("--also", type=Path, metavar="FOLDER", help="with --judge: more models")
    parser.add_argument("--save", action="store_true", help="with --judge: keep the figures")
    arguments = parser.parse_args()
    wheels = Wheels(arguments.folder)
    if arguments.judge is None:
        _measure(wheels, arguments.count, arguments.seed)
        return
    count, seed = arguments.judge
    more = sorted(arguments.also.glob("*.xml")) if arguments.also else []
    models = write_models(arguments.folder / f"judged-{seed}", count, seed, held_out=True, more=more)
    figures = {"models": len(models), "seed": seed, **judge(models, wheels.ask_all(models)).figures()}
    print(json.dumps(figures, indent=1, ensure_ascii=False))
    if arguments.save:
        save(figures, _RESULTS)


def _measure(wheels: Wheels, count: int, seed: int) -> None:
    """Ask the releases, and write the table."""
    folder = wheels.folder / "opsets"
    folder.mkdir(exist_ok=True)
    paths = opset_models(folder)
    asked = {release: dict(zip(paths, wheels.ask(release, [*paths.values()]))) for release in wheels.releases}
    opsets, operations = operation_sets(asked)
    if tuple(opsets) != RELEASES:
        _write(opsets, operations, [])
        print("the table has other releases now: start again, so that the rules are learned for these")
        return
    models = write_models(wheels.folder / f"learned-{seed}", count, seed, held_out=False)
    answers = wheels.ask_all(models)
    samples = [_sample(model, [answers[release][n] for release in RELEASES]) for n, model in enumerate(models)]
    _write(opsets, operations, learn(samples, RELEASES))


def _sample(model: Path, answers: Sequence[Answer | None]) -> Sample:
    """Return a model as layers and answers. An answer between two that agree is taken to agree with them."""
    rows: list[Row] = []
    lacking = np.zeros(len(RELEASES), bool)
    try:
        parsed = load(model)
        for fact in facts(parsed, *examine(parsed)):
            rows.append((fact.operations, fact.sentences, fact.blocks))
            if fact.layer is not None and (opset := _opset(fact.layer.version)) is not None:
                lacking |= [not has_operation(release, fact.layer.type, opset) for release in RELEASES]
    except IrrunError as error:
        rows.append(((), frozenset(f"irrun reports {d.code}" for d in error.diagnostics), True))
    codes = np.array([-1 if answer is None else bool(answer.stage) for answer in answers])
    known = np.flatnonzero(codes >= 0)
    for first, last in pairwise(known):
        if codes[first] == codes[last]:
            codes[first:last] = codes[first]
    return Sample(rows, codes, lacking)


def _opset(version: str | None) -> int | None:
    try:
        return opset_of(version)
    except ValueError:
        return None


def _write(opsets: Mapping[str, int], operations: Mapping[str, Any], refusals: Sequence[Mapping[str, Any]]) -> None:
    """Write the table, a line for each fact."""
    facts_of_types = ",\n".join(f"{json.dumps(type)}: {json.dumps(rows)}" for type, rows in operations.items())
    rules = ",\n".join(map(json.dumps, refusals))
    text = (
        f'{{\n"opsets": {json.dumps(opsets)},\n"operations": {{\n{facts_of_types}\n}},\n"refusals": [\n{rules}\n]\n}}\n'
    )
    write_file(_TABLE, text.encode())
