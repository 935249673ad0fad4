"""Plant faults at random in small networks, and see whether ``bisect`` finds them from OpenVINO's outputs alone.

``python -m tools random_faults 40 0`` plants 40 faults, drawn with the seed 0, and
prints what ``compare`` names, what ``bisect`` finds, and whether the reproductions fail alone. The suite plants a few.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import irrun
import planted
from debug.test_bisect import loop, weights
from irrun import build as b
from irrun.debug import Tolerances, bisect, compare, write_reproduction
from irrun.engines import parse_side
from irrun.model import Model
from small_networks import bert, resnet, resnet_dynamic

_VISIBLE: Final = 0.003
"""The least error of an output, relative to its largest element: a fault that no output shows is not planted."""


Samples = list[dict[str, np.ndarray]]


def remembering() -> Model:
    """Return a model whose variable, which begins with zeros, changes the output of the second sample."""
    x = b.parameter([1, 8], "f32", name="x")
    state = b.ReadValue(np.zeros((1, 8), np.float32), variable_id="s", variable_type="f32", variable_shape=[1, 8])
    mixed = b.Tanh(b.MatMul(b.Add(state, x, name="sum"), weights(8, 8), name="mixed"), name="bounded")
    kept = b.Multiply(b.Sigmoid(mixed, name="gate"), weights(1, 8), name="kept")
    recalled = b.Multiply(b.MatMul(state, weights(8, 8), name="recall"), weights(1, 8), name="scaled")
    return b.model(b.Add(recalled, x, name="y"), sinks=[b.Assign(kept, variable_id="s")])


def networks(folder: Path) -> Iterator[tuple[Path, Samples]]:
    """Save each network, and yield its path and samples."""
    import openvino as ov

    rng = np.random.default_rng(0)
    image = {"image": rng.normal(size=(1, 3, 64, 64)).astype(np.float32)}
    text = {"input_ids": rng.integers(0, 30, (1, 12)), "attention_mask": np.ones((1, 12), np.int64)}
    for build, inputs in ((resnet, image), (resnet_dynamic, image), (bert, text)):
        path = folder / f"{build.__name__}.xml"
        ov.save_model(build(ov), path, compress_to_fp16=False)
        yield path, [inputs]
    irrun.save_model(loop(), folder / "loop.xml")
    yield folder / "loop.xml", [{"x": rng.normal(size=(1, 5, 8)).astype(np.float32)}]
    irrun.save_model(remembering(), folder / "state.xml")
    yield folder / "state.xml", [{"x": rng.normal(size=(1, 8)).astype(np.float32)} for _ in range(3)]


def is_visible(right: Path, wrong: Path, samples: Samples) -> bool:
    """Return whether irrun runs both models, and their outputs differ clearly."""
    try:
        models = [irrun.compile(str(path)) for path in (right, wrong)]
        outputs = [[array for sample in samples for array in model(sample).arrays] for model in models]
    except irrun.IrrunError:  # an attribute that was changed is not valid here
        return False
    return max(np.abs(a - b).max() / np.abs(a).max() for a, b in zip(*outputs)) > _VISIBLE


@dataclass(frozen=True)
class Outcome:
    """What ``compare`` and ``bisect`` say of a fault: the layer that ``compare`` names, and those of the smallest part.

    ``fails_alone`` is whether the reproduction, run by a process of its own, ends with status 1.
    """

    network: str
    fault: planted.Fault
    first: str | None
    layers: tuple[str, ...]
    runs: int
    fails_alone: bool

    @property
    def is_named(self) -> bool:
        """Whether ``compare`` names the layer."""
        return self.first == self.fault.layer

    @property
    def is_found(self) -> bool:
        """Whether ``bisect`` ends at 3 layers or fewer with the faulty one among them, within 60 runs."""
        return self.fault.layer in self.layers and len(self.layers) <= 3 and self.runs <= 60


def campaign(count: int, seed: int = 0) -> Iterator[Outcome]:
    """Plant ``count`` faults, and yield what becomes of each."""
    with tempfile.TemporaryDirectory() as folder:
        waiting = [
            (path, samples, planted.chosen(irrun.read_model(path), 1000, seed))
            for path, samples in networks(Path(folder))
        ]
        found = 0
        while found < count and any(faults for _, _, faults in waiting):
            waiting.append(waiting.pop(0))
            path, samples, faults = waiting[-1]
            if not faults:
                continue
            wrong = path.with_name("wrong.xml")
            fault = faults.pop(0)
            planted.plant(path, fault, wrong)
            if not is_visible(path, wrong, samples):
                continue
            found += 1
            yield searched(path, wrong, samples, fault, Path(folder, f"reproduction{found}"))


def searched(right: Path, wrong: Path, samples: Samples, fault: planted.Fault, folder: Path) -> Outcome:
    """Return what ``compare`` and ``bisect`` say of a fault, and whether the reproduction in ``folder`` shows it."""
    first = compare(str(right), str(wrong), samples, keep_state=True).first
    side = f"openvino[precision=f32]:{wrong}"
    bisection = bisect(str(right), side, samples)
    fails = False
    if bisection.part is not None:
        write_reproduction(bisection, parse_side(side), folder, *Tolerances().of_layer("", "f32"))
        command = [sys.executable, "reproduce.py"]
        fails = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=300).returncode == 1
    layers = tuple(layer.name for layer in bisection.layers)
    return Outcome(right.stem, fault, None if first is None else first.layer.name, layers, bisection.runs, fails)


def main() -> None:
    """Print each fault, and how many were found."""
    numbers = [int(text) for text in sys.argv[1:]]
    counts: Counter[str] = Counter()
    for outcome in campaign(*(numbers or [40])):
        counts.update(
            planted=1, named=outcome.is_named, found=outcome.is_found, fails_alone=outcome.fails_alone,
            most_runs=max(outcome.runs - counts["most_runs"], 0),
        )  # fmt: skip
        fault = f"{outcome.network} {outcome.fault.kind} {outcome.fault.layer}"
        missed = [word for word in ("is_named", "is_found", "fails_alone") if not getattr(outcome, word)]
        print(f"{fault}: {', '.join(outcome.layers)} in {outcome.runs} runs", *(f"NOT {m}" for m in missed), flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
