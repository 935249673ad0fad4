"""The command: the table of families, with what became of each."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

import numpy as np
import openvino as ov

import irrun
from benchmarks.report import processor, store
from irrun.debug.paged import serving
from irrun.debug.paged.calls import plans
from irrun.debug.paged.sides import Paged, Stateful, not_evictable, rows
from served import planting
from served.export import exported, rewritten
from served.models import FAMILIES, VOCABULARY, built

__all__ = ["Outcome", "main", "outcome"]

F32: Final = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
TOKENS: Final = 70
SLOTS: Final = 32


@dataclass(frozen=True)
class Outcome:
    """What became of a family: its paged operations or why there are none, and what agrees."""

    name: str
    operations: str
    refusal: str = ""
    schedules: str = ""
    tokens: int = 0
    difference: float = 0.0
    openvino: float = 0.0
    """The largest difference of a logit between irrun's paged run and OpenVINO's, relative to the largest logit."""

    @property
    def line(self) -> str:
        if self.refusal:
            return f"{self.name:<16} not rewritten: {self.refusal}"
        return f"{self.name:<16} {self.operations:<45} {self.schedules:>5} {self.tokens:>6} {self.difference:>9.1e} {self.openvino:>9.1e}"


def outcome(name: str, folder: Path) -> Outcome:
    """Make a family, rewrite it, and run both forms under all schedules, and the paged form in OpenVINO."""
    stateful, paged = folder / f"{name}.xml", folder / f"{name}-paged.xml"
    try:
        model = made(name, folder)
    except RuntimeError as error:
        return Outcome(name, "", refusal=[line for line in str(error).splitlines() if line][-1])
    counts = Counter(node.get_type_name() for node in model.get_ops() if node.get_type_name().startswith("Paged"))
    found = serving(str(stateful), str(paged), tokens=TOKENS, slots=SLOTS)
    agreeing = sum(schedule.fault is None for schedule in found.schedules)
    return Outcome(
        name,
        ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())),
        schedules=f"{agreeing} of {len(found.schedules)}",
        tokens=sum(schedule.tokens for schedule in found.schedules),
        difference=max(schedule.difference for schedule in found.schedules) / found.allowed * 1e-4,
        openvino=_against_openvino(model, stateful, paged),
    )


def _against_openvino(model: ov.Model, stateful: Path, paged: Path) -> float:
    """Return how far the logits of both engines are apart in all schedules, relative to the largest logit."""
    compiled = ov.Core().compile_model(model, "CPU", F32)
    mine, reference = Paged(irrun.compile(paged)), Stateful(irrun.compile(stateful))
    first, second = np.random.default_rng(0).integers(0, VOCABULARY, (2, TOKENS))
    second[:SLOTS] = first[:SLOTS]
    reference.run(first)
    worst = largest = 0.0
    for plan in plans([first, second], SLOTS, evicts=not_evictable(reference, mine, TOKENS, SLOTS) is None):
        caches = mine.caches(reference, TOKENS, SLOTS, 2 * -(-TOKENS // SLOTS) + 4)
        request, passed = compiled.create_infer_request(), caches
        for name, array in caches.items():
            port = compiled.input(name)
            request.set_tensor(port, ov.Tensor(array.astype(port.element_type.to_dtype())))
        for call in plan.calls:
            for port in compiled.inputs:
                if port.any_name in call.inputs:
                    request.set_tensor(port, ov.Tensor(call.inputs[port.any_name]))
            request.infer()
            theirs = request.output_tensors[0].data
            for a, b in zip(rows(mine.run(call, passed)[0], call), rows(theirs, call)):
                worst, largest = max(worst, float(np.abs(a - b).max())), max(largest, float(np.abs(b).max()))
            passed = {}
    return worst / largest


def made(name: str, folder: Path) -> ov.Model:
    """Save a family and its paged form, and return the latter. Raises RuntimeError if OpenVINO does not rewrite it."""
    stateful = folder / f"{name}.xml"
    ov.save_model(exported(built(name)), stateful, compress_to_fp16=False)
    model = rewritten(stateful)
    ov.save_model(model, folder / f"{name}-paged.xml", compress_to_fp16=False)
    return model


def _planted(count: int, seed: int, keep: Path | None) -> int:
    """Plant faults, print what `irrun paged` says of each, and return 1 if it names fewer than 95 %."""
    with tempfile.TemporaryDirectory(prefix="served-") as name:
        folder = keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for family in planting.FAMILIES:
            if not (folder / f"{family}-paged.xml").exists():
                made(family, folder)
        named = 0
        for verdict in planting.verdicts(count, seed, folder):
            named += verdict.is_named
            print(verdict.line, flush=True)
    print(f"{named} of {count} faults are named with layer and cause")
    return int(named < 0.95 * count)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return 1 if a family is rewritten, and irrun and OpenVINO run it differently."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(prog="python -m tools served")
    parser.add_argument("names", nargs="*", choices=[[], *FAMILIES], metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the models there")
    parser.add_argument("--save", type=Path, metavar="FILE", help="store the results, for python -m tools figures")
    parser.add_argument("--faults", type=int, nargs=2, metavar=("COUNT", "SEED"), help="plant faults instead")
    options = parser.parse_args(arguments)
    if options.faults is not None:
        return _planted(*options.faults, options.keep)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="served-") as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for family in options.names or FAMILIES:
            outcomes.append(outcome(family, folder))
            print(outcomes[-1].line, flush=True)
    if options.save is not None:
        facts = {
            **processor(),
            "openvino": metadata.version("openvino"),
            "transformers": metadata.version("transformers"),
        }
        store(options.save, "tools served", facts, [asdict(found) for found in outcomes])
    return int(any(not made.openvino < 1e-4 for made in outcomes))


if __name__ == "__main__":
    sys.exit(main())
