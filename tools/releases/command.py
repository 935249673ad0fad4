"""The command line of ``python -m tools releases``."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import releases
from benchmarks.report import processor, store
from irrun.files import write_file
from irrun.targets.releases import RELEASES, table
from places import ROOT
from releases.judging import judge
from releases.learning import learn
from releases.material import write_models
from releases.opsets import internal_operations, operation_sets
from releases.opsets import models as opset_models
from releases.probing import Wheels
from releases.samples import layers, sample

_LAYER: Final = re.compile(r'type="(\w+)" version="(\w+)"')
_TABLE = ROOT / "irrun" / "targets" / "table.json"


def main() -> None:
    """Read the command line, and measure or judge."""
    parser = argparse.ArgumentParser("python -m tools releases", description=releases.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=16_000, help="models to learn from")
    parser.add_argument("--seed", type=int, default=7, help="which models to learn from")
    parser.add_argument("--judge", type=int, nargs=2, metavar=("COUNT", "SEED"))
    parser.add_argument("--also", type=Path, metavar="FOLDER", help="with --judge: more models")
    parser.add_argument("--save", type=Path, metavar="FILE", help="with --judge: store the results, for tools figures")
    arguments = parser.parse_args()
    wheels = Wheels(arguments.folder)
    if arguments.judge is None:
        _measure(wheels, arguments.count, arguments.seed)
        return
    count, seed = arguments.judge
    more = sorted(arguments.also.glob("*.xml")) if arguments.also else []
    models = write_models(arguments.folder / f"judged-{seed}", count, seed, held_out=True, more=more)
    rows = judge(models, wheels.ask_all(models))
    for row in rows:
        print(json.dumps(row, ensure_ascii=False))
    if arguments.save is not None:
        store(arguments.save, "tools releases", {**processor(), "models": len(models)}, rows)


def _measure(wheels: Wheels, count: int, seed: int) -> None:
    """Ask the releases, and write the table."""
    folder = wheels.folder / "opsets"
    folder.mkdir(exist_ok=True)
    paths = opset_models(folder)
    asked = {release: dict(zip(paths, wheels.ask(release, [*paths.values()]))) for release in wheels.releases}
    opsets, operations = operation_sets(asked)
    if tuple(opsets) != RELEASES:
        _write(opsets, operations, table()["internal"], table()["refusals"])
        print("the table has other releases now: start again, so that the rules are learned for these")
        return
    models = write_models(wheels.folder / f"learned-{seed}", count, seed, held_out=False)
    read = [layers(model) for model in models]
    unnumbered = [_unnumbered(model) for model in models]
    lacking = [() if types else np.array(RELEASES)[of.lacking].tolist() for types, of in zip(unnumbered, read)]
    answers = wheels.ask_some(models, lacking)
    found = {release: answers[release] for release in RELEASES}
    internal = internal_operations(unnumbered, found) | table()["internal"]
    known = table()["refusals"]
    _write(opsets, operations, internal, known)
    table.cache_clear()
    samples = [sample(of, [answers[release][n] for release in RELEASES]) for n, of in enumerate(read)]
    _write(opsets, operations, internal, learn(samples, RELEASES, known))


def _unnumbered(model: Path) -> set[str]:
    """Return the types of the layers whose version names no numbered operation set."""
    text = model.read_text("utf-8", "replace")
    return {type for type, version in _LAYER.findall(text) if not re.fullmatch(r"opset\d+", version)}


def _write(
    opsets: Mapping[str, int],
    operations: Mapping[str, Any],
    internal: Mapping[str, str],
    refusals: Sequence[Mapping[str, Any]],
) -> None:
    """Write the table, a line for each fact."""
    types = ",\n".join(f"{json.dumps(type)}: {json.dumps(rows)}" for type, rows in operations.items())
    rules = ",\n".join(map(json.dumps, refusals))
    head = f'"opsets": {json.dumps(opsets)},\n"internal": {json.dumps(internal)}'
    text = f'{{\n{head},\n"operations": {{\n{types}\n}},\n"refusals": [\n{rules}\n]\n}}\n'
    write_file(_TABLE, text.encode())
