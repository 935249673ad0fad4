"""Plant faults at random in small networks, and see whether ``bisect`` finds them from OpenVINO's outputs alone.

``PYTHONPATH=tests:tests/debug python tests/debug/random_faults.py 40`` plants 40 faults and prints what was found. The
suite plants a few.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from test_bisect import loop

import irrun
import planted
from irrun.debug import bisect
from small_networks import bert, resnet, resnet_dynamic

_VISIBLE: Final = 0.003
"""The least error of an output, relative to its largest element: a fault that no output shows is not planted."""


def networks(folder: Path) -> Iterator[tuple[Path, dict[str, np.ndarray]]]:
    """Save each network, and yield its path and inputs."""
    import openvino as ov

    rng = np.random.default_rng(0)
    image = {"image": rng.normal(size=(1, 3, 64, 64)).astype(np.float32)}
    text = {"input_ids": rng.integers(0, 30, (1, 12)), "attention_mask": np.ones((1, 12), np.int64)}
    for build, inputs in ((resnet, image), (resnet_dynamic, image), (bert, text)):
        path = folder / f"{build.__name__}.xml"
        ov.save_model(build(ov), path, compress_to_fp16=False)
        yield path, inputs
    irrun.save_model(loop(), folder / "loop.xml")
    yield folder / "loop.xml", {"x": rng.normal(size=(1, 5, 8)).astype(np.float32)}


def is_visible(right: Path, wrong: Path, inputs: dict[str, np.ndarray]) -> bool:
    """Return whether irrun runs both models, and their outputs differ clearly."""
    try:
        outputs = [irrun.run(str(path), inputs).arrays for path in (right, wrong)]
    except irrun.IrrunError:  # an attribute that was changed is not valid here
        return False
    return max(np.abs(a - b).max() / np.abs(a).max() for a, b in zip(*outputs)) > _VISIBLE


def campaign(count: int, seed: int = 0) -> Iterator[tuple[str, bool]]:
    """Plant ``count`` faults, and yield for each what ``bisect`` says, and whether the layer is among 3 or fewer."""
    with tempfile.TemporaryDirectory() as folder:
        waiting = [
            (path, inputs, planted.chosen(irrun.read_model(path), 1000, seed))
            for path, inputs in networks(Path(folder))
        ]
        found = 0
        while found < count and any(faults for _, _, faults in waiting):
            waiting.append(waiting.pop(0))
            path, inputs, faults = waiting[-1]
            if not faults:
                continue
            wrong = path.with_name("wrong.xml")
            fault = faults.pop(0)
            planted.plant(path, fault, wrong)
            if not is_visible(path, wrong, inputs):
                continue
            found += 1
            bisection = bisect(str(path), f"openvino:{wrong}", inputs)
            names = [layer.name for layer in bisection.layers]
            is_right = fault.layer.rsplit("/")[-1] in names and len(names) <= 3 and bisection.runs <= 60
            yield f"{path.stem} {fault.kind} {fault.layer}: {names} in {bisection.runs} runs", is_right


def main() -> None:
    """Print each fault, and how many were found."""
    counts: Counter[str] = Counter()
    for line, is_right in campaign(int(sys.argv[1]) if len(sys.argv) > 1 else 40):
        print(line, "" if is_right else "MISSED", flush=True)
        counts.update(planted=1, found=int(is_right))
    print(dict(counts))


if __name__ == "__main__":
    main()
