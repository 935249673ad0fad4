"""Plant faults at random in small networks, and see whether ``compare`` and ``bisect`` find them.

``PYTHONPATH=tests python tests/debug/random_faults.py 40`` plants 40 faults, has OpenVINO run the faulty files, and prints
what was found. The suite plants a few.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import numpy as np
from test_bisect import loop

import irrun
from irrun.debug import bisect, compare
from irrun.model import Layer, Model, is_constant
from small_networks import bert, resnet, resnet_dynamic

_TYPES: Final = {
    "ReLU": "Sigmoid", "Tanh": "Sigmoid", "Add": "Subtract", "Multiply": "Add", "Subtract": "Add", "Divide": "Multiply",
}  # fmt: skip
"""Types that are replaced by another that has the same ports and attributes."""
_ATTRIBUTES: Final = {"MVN": ('eps="[^"]*"', 'eps="0.3"'), "Gelu": ('"ERF"', '"TANH"')}
_VISIBLE: Final = 0.01
"""The least error of an output, relative to its largest element: a fault that nothing shows is drawn again."""


@dataclass(frozen=True)
class Fault:
    """A fault in one layer, and the files of the model that has it."""

    kind: str
    layer: str
    xml: str
    bin: bytes


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


def plant(path: Path, rng: Random) -> Fault | None:
    """Return a random fault, or None if the drawn layer allows none of the drawn kind."""
    model, text, data = irrun.read_model(path), path.read_text(), bytearray(path.with_suffix(".bin").read_bytes())
    places = [place for place in _layers(model) if place[1].type not in ("Parameter", "Result", "Const")]
    kind, (owner, layer) = rng.choice(["weight", "attribute", "type"]), rng.choice(places)
    (element,) = [
        match[0] for match in re.finditer(r"<layer [^>]*>(?:(?!<layer ).)*?</layer>", text, re.DOTALL)
        if f'name="{layer.name}"' in match[0][: match[0].index(">")]
    ] or [""]  # fmt: skip
    if kind == "weight":
        constants = [
            owner.layers[feed[0]] for feed in owner.feeds[layer.id] if feed and is_constant(owner.layers[feed[0]])
        ]
        constants = [c for c in constants if c.attributes["element_type"] == "f32" and int(c.attributes["size"]) > 16]
        if not constants:
            return None
        offset, size = (int(constants[0].attributes[name]) for name in ("offset", "size"))
        scaled = np.frombuffer(data, np.float32, size // 4, offset) * np.float32(1.5)
        data[offset : offset + size] = scaled.tobytes()
        return Fault(kind, layer.name, text, bytes(data))
    old, new = _ATTRIBUTES.get(layer.type, ("", "")) if kind == "attribute" else (f'type="{layer.type}"', "")
    if kind == "type":
        new = f'type="{_TYPES.get(layer.type, "")}"'
    if not element or not old or new == 'type=""' or not re.search(old, element):
        return None
    return Fault(kind, layer.name, text.replace(element, re.sub(old, new, element, count=1)), bytes(data))


def _layers(model: Model) -> Iterator[tuple[Model, Layer]]:
    for layer in model.layers.values():
        yield model, layer
        for body in layer.bodies.values():
            yield from _layers(body)


def visible(good: Path, bad: Path, inputs: dict[str, np.ndarray]) -> bool:
    """Return whether irrun's outputs of the two models differ clearly."""
    outputs = [irrun.run(str(path), inputs).arrays for path in (good, bad)]
    errors = [np.abs(a - b).max() / np.abs(a).max() for a, b in zip(*outputs)]
    return max(errors) > _VISIBLE


def campaign(faults: int, seed: int = 0) -> Iterator[tuple[str, bool, bool]]:
    """Plant faults, and yield of each a line of text, and whether ``compare`` and ``bisect`` found it."""
    rng = Random(seed)
    with tempfile.TemporaryDirectory() as name:
        all_networks = list(networks(Path(name)))
        planted = 0
        while planted < faults:
            path, inputs = all_networks[planted % len(all_networks)]
            fault, bad = plant(path, rng), path.with_name("faulty.xml")
            if fault is None:
                continue
            bad.write_text(fault.xml)
            bad.with_suffix(".bin").write_bytes(fault.bin)
            if not visible(path, bad, inputs):
                continue
            planted += 1
            first = compare(str(path), str(bad), inputs).first
            compared = first is not None and first.layer.name.rsplit("/")[-1] == fault.layer
            bisection = bisect(str(path), f"openvino:{bad}", inputs)
            layers = [layer.name for layer in bisection.layers]
            bisected = fault.layer in layers and len(layers) <= 3 and bisection.runs <= 60
            where = f"{path.stem} {fault.kind} {fault.layer}"
            yield (
                f"{where}: compare {first.layer.name if first else None}, bisect {layers} in {bisection.runs} runs",
                compared, bisected,
            )  # fmt: skip


def main() -> None:
    """Print each fault, and how many were found."""
    counts: Counter[str] = Counter()
    for line, compared, bisected in campaign(int(sys.argv[1]) if len(sys.argv) > 1 else 40):
        print(line, "" if compared and bisected else "MISSED", flush=True)
        counts.update(faults=1, compared=int(compared), bisected=int(bisected))
    print(dict(counts))


if __name__ == "__main__":
    main()
