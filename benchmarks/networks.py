"""Whole networks with random weights. They are converted once, which takes the extra `bench`, and then kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.case import Case, Setup
from benchmarks.measure import ROOT

_ALL = "f32 f16 int8 int4"
NETWORKS = [
    ("ResNet-50 224", "resnet50", 0, 1, "f32 f16 int8"),
    ("MobileNetV2 224", "mobilenet_v2", 0, 1, "f32 f16 int8"),
    ("U-Net 256", "unet", 0, 1, "f32 f16"),
    ("Diffusion U-Net 32", "diffusion_unet", 0, 1, "f32 f16"),
    ("BERT-base 128", "bert_base", 0, 1, f"{_ALL} quantized"),
    ("ViT-B/16 224", "vit_b16", 0, 1, "f32 f16 int8 quantized"),
    ("Swin-T 224", "swin_t", 0, 1, "f32 f16"),
    ("Whisper-tiny encoder", "whisper_encoder", 0, 1, "f32 f16"),
    ("GPT-2 64", "gpt2", 0, 1, _ALL),
    ("Llama 12x768 prefill 32", "decoder", 0, 1, _ALL),
    ("Llama 12x768 per token", "decoder", 1, 64, _ALL),
    ("LSTM tagger 64", "lstm_tagger", 0, 1, "f32 f16"),
]
"""Name, file, calls that are not timed, calls that are, and forms of the weights: see ``architectures.FORMS``."""


def networks(setup: Setup) -> Iterator[Case]:
    for name, file, lead, calls, forms in NETWORKS:
        for form in forms.split():
            ir = partial(network, setup.cache, file, form)
            attentions = 12 if file == "decoder" else 0
            yield Case(f"{name}, {form}", ir, lead=lead, calls=calls, memory=True, lanes=True, attentions=attentions)


def network(cache: Path, name: str, form: str = "f32", _: Path | None = None) -> Path:
    """The IR of a network, converted where it is not in the cache. Raises RuntimeError where that cannot be."""
    path = cache / f"{name}-{form}.xml"
    if not path.exists():
        command = [sys.executable, "-m", "benchmarks.architectures", str(cache.resolve()), name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise RuntimeError(f"{why}; to convert it: pip install torch==2.13.0 && pip install '.[bench]'")
    return path
