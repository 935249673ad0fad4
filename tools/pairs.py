"""Judge pairs of files and engines: half of them hide a fault, half differ in precision, cache, processor or version.

``python -m tools pairs 120 7`` makes 120 pairs with the seed 7. It asks ``compare`` about each: does it name the layer
of the fault, and does it agree where nothing is wrong? With ``--bisect``, ``bisect`` is asked about the faults, too.
``--python PATH``, which may be repeated, adds the OpenVINO of another environment to the harmless sides.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

import irrun
from irrun.debug import bisect, compare
from irrun.model import Layer, Model, is_constant
from language_models import decoder
from small_networks import bert, resnet

DEFAULT: Final = "openvino"
SIDES: Final = (DEFAULT, "openvino[precision=f32]")
"""Where faults are hidden: as the engine is shipped, and in f32."""
HARMLESS: Final = (
    *SIDES, "openvino[precision=bf16]", "openvino[precision=f16]", "openvino[KV_CACHE_PRECISION=u8]",
    "openvino[KV_CACHE_PRECISION=f16]", "openvino[EXECUTION_MODE_HINT=ACCURACY]",
)  # fmt: skip
INSTRUCTIONS: Final = ("", "AVX512_CORE", "AVX2", "SSE41")
"""The newest instructions that OpenVINO may use; an empty text allows all."""
_DRAWS: Final = 20
"""The most sides that are tried: one without bf16 refuses what another computes in bf16."""
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
    kinds: Mapping[str, Sequence[Layer]] = {
        "channel": _weights(model), "epsilon": _of_type(model, "MVN"), "axis": _of_type(model, "SoftMax"),
        "mask": _of_type(model, "ScaledDotProductAttention"), "group": _weights(model, "MatMul"),
        "rotary": _of_type(model, "Cos", "Sin"),
    }  # fmt: skip
    kind = rng.choice([name for name, layers in kinds.items() if layers])
    layer = rng.choice(kinds[kind])
    if kind in ("channel", "group"):
        change = _scaled if kind == "channel" else _rolled
        _with_weights(path, model, layer, lambda values: change(values, rng), target)
        return Hidden(kind, model.unique_names[layer.id], target)
    changed = replace(layer, attributes={**layer.attributes, **_CHANGES.get(kind, {})})
    if kind == "axis":
        changed = replace(layer, attributes={"axis": "0" if layer.attributes["axis"] != "0" else "1"})
    elif kind == "rotary":
        changed = replace(layer, type={"Cos": "Sin", "Sin": "Cos"}[layer.type])
    irrun.save_model(replace(model, layers={**model.layers, layer.id: changed}), target)
    return Hidden(kind, model.unique_names[layer.id], target)


_CHANGES: Final = {"epsilon": {"eps": "0.001"}, "mask": {"causal": "true"}}


def _of_type(model: Model, *types: str) -> list[Layer]:
    return [layer for layer in model.layers.values() if layer.type in types]


def _weights(model: Model, *types: str) -> list[Layer]:
    """Return the layers that read a constant matrix in f32, which no other layer reads."""
    found = []
    for id, layer in model.layers.items():
        feed = model.feeds[id][1] if layer.type in (types or _READERS) else None
        if feed is not None and is_constant(model.layers[feed[0]]) and len(model.readers[feed]) == 1:
            found.append(layer)
    return found


def _scaled(values: np.ndarray, rng: random.Random) -> None:
    values[rng.randrange(len(values))] *= rng.choice(_SCALES)


def _rolled(values: np.ndarray, rng: random.Random) -> None:
    """Let each channel have the weights of the one before: groups of channels begin one too late."""
    values[:] = np.roll(values, 1, axis=0)


def _with_weights(path: Path, model: Model, layer: Layer, change: Callable[[np.ndarray], None], target: Path) -> None:
    feed = model.feeds[layer.id][1]
    assert feed is not None
    weight = model.layers[feed[0]].attributes
    data = bytearray(path.with_suffix(".bin").read_bytes())
    shape = [int(dim) for dim in weight["shape"].split(",")]
    offset, size = int(weight["offset"]), int(weight["size"])
    values = np.frombuffer(data, np.float32, size // 4, offset).reshape(shape)
    is_last = layer.type == "MatMul" and layer.attributes.get("transpose_b", "false") != "true"
    change(np.moveaxis(values, -1, 0) if is_last else values)
    target.write_bytes(path.read_bytes())
    target.with_suffix(".bin").write_bytes(data)


def _judged(path: Path, fault: Hidden, side: str, counts: Counter[str], *, also: bool) -> None:
    """Ask about a fault, and print and count what is named."""
    comparison = compare(str(path), f"{side}:{fault.path}")
    named = "nothing" if comparison.first is None else comparison.first.layer.name
    inside = all(output.agrees for output in comparison.outputs)
    counts["faults"] += 1
    counts["faults named"] += named == fault.layer
    counts["faults hidden in the outputs"] += inside
    line = f"{path.stem} {fault.kind} {fault.layer}, {side}: compare names {named}"
    if also:
        parts = [layer.name for layer in bisect(str(path), f"{side}:{fault.path}").layers]
        counts["faults bisected"] += parts == [fault.layer]
        line += f", bisect {', '.join(parts) or 'nothing'}"
    print(f"{line}; {'hidden' if inside else 'seen'} in the outputs", flush=True)


def _harmless(path: Path, side: str, instructions: str, seed: int, counts: Counter[str]) -> bool:
    """Ask about a healthy file, and print and count whether it agrees. Return False if the engine refuses the pair."""
    if instructions:
        os.environ["ONEDNN_MAX_CPU_ISA"] = instructions
    try:
        comparison = compare(str(path), f"{side}:{path}", seed=seed)
    finally:
        os.environ.pop("ONEDNN_MAX_CPU_ISA", None)
    if comparison.verdict == "refused":
        counts["refused by the engine, and drawn anew"] += 1
        return False
    counts["harmless"] += 1
    counts["harmless that agree"] += comparison.agrees
    what = "agrees" if comparison.agrees else comparison.verdict
    if comparison.first is not None:
        what += f" at {comparison.first.layer.name}: {comparison.first.layer.budget}"
    print(f"{path.stem}, {side} {instructions or 'as it is'}: {what}", flush=True)
    return True


def main() -> None:
    """Print what becomes of each pair, and the counts."""
    parser = argparse.ArgumentParser(prog="python -m tools pairs", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--bisect", action="store_true", help="ask bisect about the faults, too")
    parser.add_argument("--python", action="append", default=[], metavar="PATH", help="another OpenVINO")
    options = parser.parse_args()
    rng, counts = random.Random(options.seed), Counter[str]()
    sides = [*HARMLESS, *(f"openvino[precision=f32,python={path}]" for path in options.python)]
    with tempfile.TemporaryDirectory() as name:
        paths = list(networks(Path(name)))
        for number in range(options.count):
            path = paths[number // 2 % len(paths)]
            if number % 2:
                fault = hidden(path, rng, Path(name, "wrong.xml"))
                _judged(path, fault, rng.choice(SIDES), counts, also=options.bisect)
            else:
                drawn = ((rng.choice(sides), rng.choice(INSTRUCTIONS), rng.randrange(1 << 16)) for _ in range(_DRAWS))
                any(_harmless(path, *pair, counts) for pair in drawn)
    for what, count in counts.items():
        print(f"{count:>6} {what}")


if __name__ == "__main__":
    main()
