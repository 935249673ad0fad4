"""The command: which faults and campaigns, and the table of what became of the faults."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from irrun.fuzz import forms
from mutants import Project, Tree
from places import ROOT
from planted_faults.searching import FAULTS, Campaigns, Fault, Outcome, Round, searched

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant the faults that the arguments name. Return 1 if one of them is not found."""
    options = _parser().parse_args(arguments)
    compiled = sorted(forms(), key=lambda form: form == "native")
    kinds = [*[""] * max(len(compiled), 1), *compiled]
    rounds = [Round(options.seed + n, kinds[n % len(kinds)]) for n in range(options.seeds)]
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="planted-", ignore_cleanup_errors=True) as name:
        folder = options.folder or Path(name, "campaigns")
        folder.mkdir(parents=True, exist_ok=True)
        campaigns = Campaigns(options.side, options.count, rounds, folder)
        control, *others = [Tree(Project(ROOT), Path(name, str(number))) for number in range(options.jobs + 1)]
        trees: SimpleQueue[Tree] = SimpleQueue()
        for tree in others:
            trees.put(tree)

        def search(fault: Fault) -> Outcome:
            tree = trees.get()
            try:
                return searched(fault, campaigns, tree, control)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as executor:
            for outcome in executor.map(search, [FAULTS[name] for name in options.names or FAULTS]):
                outcomes.append(outcome)
                print(*_lines(outcome, campaigns), sep="\n", flush=True)
    found = sum(outcome.verdict == "found" for outcome in outcomes)
    print(f"{found} of {len(outcomes)} faults found")
    return 0 if found == len(outcomes) else 1


def _lines(outcome: Outcome, campaigns: Campaigns) -> list[str]:
    """Return what became of a fault, in lines."""
    fault = outcome.fault
    lines = [f"{fault.name}: {outcome.verdict} (only {fault.only}: {fault.fault}), {outcome.judged} models judged"]
    if outcome.round is not None:
        lines += [*outcome.finding.split("\n"), outcome.round.command(campaigns.side, outcome.number)]
    for (seed, number), name in zip(outcome.places, outcome.excused.elements()):
        lines.append(f"excused: {name} (seed {seed}, model {number})")
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools planted_faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults (default: all)")
    parser.add_argument(
        "--against", dest="side", default="openvino[precision=f32]", help="the engine (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--seeds", type=int, default=10, help="campaigns (default: %(default)s)")
    parser.add_argument("--count", type=int, default=1000, help="models of a campaign (default: 1000)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="faults that are sought at a time (default: 1)")
    parser.add_argument("--folder", type=Path, help="keep the graphs and the machine code of the campaigns there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
