"""How far the budgets of `irrun compare` are above the errors of OpenVINO: `python -m benchmarks.budgets --help`."""

from __future__ import annotations

import math
import statistics
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

import irrun
from benchmarks.networks import network
from benchmarks.report import processor, store
from irrun.debug import Comparison, compare

NETWORKS: Final = {
    "ResNet-50": "resnet50",
    "MobileNetV2": "mobilenet_v2",
    "U-Net": "unet",
    "diffusion U-Net": "diffusion_unet",
    "BERT-base": "bert_base",
    "GPT-2": "gpt2",
    "Whisper's encoder": "whisper_encoder",
    "Swin-T": "swin_t",
    "decoder with a cache": "decoder",
    "LSTM tagger": "lstm_tagger",
}
SIDES: Final = ("openvino[precision=f32]", "openvino")
"""In f32, and as the engine is shipped."""


def judged(path: Path, side: str) -> Comparison:
    """Return what ``compare`` says of a network in a side, for the inputs of its first call."""
    with np.load(path.with_suffix(".npz")) as feeds:
        arrays = [feeds[key] for key in feeds if key.startswith("0.")]
    names = [port.name for port in irrun.read_model(path).inputs]
    return compare(str(path), f"{side}:{path}", dict(zip(names, arrays, strict=True)))


def row(title: str, side: str, comparison: Comparison) -> dict[str, Any]:
    """Return a row: the outputs of layers within their budgets, and the budget divided by the error.

    The latter is that at the worst element of each output that errs at all: the median of these outputs.
    """
    excesses = [layer.budget.excess for layer in comparison.layers if layer.budget is not None]
    return {
        "network": title,
        "side": side,
        "precision": comparison.properties[1]["INFERENCE_PRECISION_HINT"],
        "verdict": comparison.verdict,
        "outputs": len(excesses),
        "inside": sum(excess <= 1 for excess in excesses),
        "ratio": statistics.median([1 / excess for excess in excesses if excess] or [math.inf]),
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--form", default="f32", show_default=True, help="Of the weights: f32, f16, int8 or int4.")
@click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="The folder of converted networks.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures as JSON.")
def main(names: Sequence[str], form: str, cache: Path | None, save: Path | None) -> None:
    """Judge networks in OpenVINO by the budgets of `irrun compare`, in f32 and as the engine is shipped.

    NAME is a file of `benchmarks.architectures`, such as resnet50; without any, all run. Each line gives the verdict,
    the outputs of layers that were judged, those within their budgets, and the ratio: the budget divided by the error,
    at the worst element of each output that errs at all, in the median of these outputs.
    """
    found = []
    for title, name in NETWORKS.items():
        if names and name not in names:
            continue
        path = network(cache or Path(tempfile.gettempdir(), "irrun-benchmarks"), name, form)
        for side in SIDES:
            found.append(row(title, side, judged(path, side)))
            click.echo(", ".join(f"{name} {value}" for name, value in found[-1].items()))
    if save:
        store(save, "benchmarks.budgets", {**processor(), "openvino": version("openvino")}, found)


if __name__ == "__main__":
    main()
