"""Hide faults in networks, some smaller than the precision's own error, and see whether a layer is named.

``compare`` and ``bisect`` are asked, with the same sides.

``python -m tools hidden_faults 15 0`` hides 15 faults, drawn with the seed 0, and runs OpenVINO with its default and in
f32. It prints for each what is named, and how many outputs of the healthy network agree.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

import irrun
from irrun.debug import bisect, compare
from irrun.model import Layer, Model, is_constant
from language_models import decoder
from small_networks import bert, resnet

SIDES: Final = ("openvino", "openvino[precision=f32]")
_SCALES: Final = (1.004, 1.01, 1.05)
"""Factors of one channel. The first two are hidden by the rounding of bf16 in single elements."""
_READERS: Final = ("MatMul", "Convolution")


@dataclass(frozen=True)
class Hidden:
    """A fault: its kind, the layer that goes wrong, and the file that has it."""

    kind: str
    layer: str
    path: Path


def networks(folder: Path) -> Iterator[Path]:
    """Save each network, and yield its path."""
    import openvino as ov

    for build in (resnet, bert):
        ov.save_model(build(ov), folder / f"{build.__name__}.xml", compress_to_fp16=False)
        yield folder / f"{build.__name__}.xml"
    irrun.save_model(decoder(), folder / "decoder.xml")
    yield folder / "decoder.xml"


def hidden(path: Path, rng: random.Random, target: Path) -> Hidden:
    """Write a copy of a model with a fault to ``target``."""
    model = irrun.read_model(path)
    kinds = {"scale": _weights(model), "epsilon": _of_type(model, "MVN"), "axis": _of_type(model, "SoftMax")}
    kind = rng.choice([name for name, layers in kinds.items() if layers for _ in range(2 if name == "scale" else 1)])
    layer = rng.choice(kinds[kind])
    if kind == "scale":
        _scale(path, model, layer, rng, target)
    else:
        change = {"eps": "0.001"} if kind == "epsilon" else {"axis": "0" if layer.attributes["axis"] != "0" else "1"}
        changed = replace(layer, attributes={**layer.attributes, **change})
        irrun.save_model(replace(model, layers={**model.layers, layer.id: changed}), target)
    return Hidden(kind, model.unique_names[layer.id], target)


def _of_type(model: Model, type: str) -> list[Layer]:
    return [layer for layer in model.layers.values() if layer.type == type]


def _weights(model: Model) -> list[Layer]:
    """Return the layers that read a constant matrix in f32, which no other layer reads."""
    found = []
    for id, layer in model.layers.items():
        feed = model.feeds[id][1] if layer.type in _READERS else None
        if feed is not None and is_constant(model.layers[feed[0]]) and len(model.readers[feed]) == 1:
            found.append(layer)
    return found


def _scale(path: Path, model: Model, layer: Layer, rng: random.Random, target: Path) -> None:
    feed = model.feeds[layer.id][1]
    assert feed is not None
    weight = model.layers[feed[0]].attributes
    data = bytearray(path.with_suffix(".bin").read_bytes())
    shape = [int(dim) for dim in weight["shape"].split(",")]
    offset, size = int(weight["offset"]), int(weight["size"])
    values = np.frombuffer(data, np.float32, size // 4, offset).reshape(shape)
    is_last = layer.type == "MatMul" and layer.attributes.get("transpose_b", "false") != "true"
    values = np.moveaxis(values, -1, 0) if is_last else values
    values[rng.randrange(len(values))] *= rng.choice(_SCALES)
    target.write_bytes(path.read_bytes())
    target.with_suffix(".bin").write_bytes(data)


def main() -> None:
    """Print each fault with what is named, and the counts of each side."""
    count, seed = [*map(int, sys.argv[1:]), 15, 0][:2] if len(sys.argv) < 3 else map(int, sys.argv[1:3])
    rng, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        paths = list(networks(Path(name)))
        for path in paths:
            for side in SIDES:
                counts[f"{side} healthy"] += compare(str(path), f"{side}:{path}").agrees
        for number in range(count):
            path = paths[number % len(paths)]
            fault = hidden(path, rng, Path(name, "wrong.xml"))
            for side in SIDES:
                comparison = compare(str(path), f"{side}:{fault.path}")
                named = "nothing" if comparison.first is None else comparison.first.layer.name
                counts[side] += named == fault.layer
                bisection = bisect(str(path), f"{side}:{fault.path}")
                parts = [layer.name for layer in bisection.layers]
                counts[f"{side} bisected"] += parts == [fault.layer]
                inside = all(output.agrees for output in comparison.outputs)
                where = "hidden in the outputs" if inside else "seen in the outputs"
                of = f"{path.stem} {fault.kind} {fault.layer}: {side}"
                print(f"{of}: compare names {named}, bisect {', '.join(parts) or 'nothing'}; {where}", flush=True)
    print(dict(counts), f"of {count} faults and {len(paths)} healthy networks")


if __name__ == "__main__":
    main()
