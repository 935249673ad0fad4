"""Language models that decode: ask ``compare_tokens`` about healthy ones and about planted faults, and count."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final

import irrun
from irrun.debug import Comparison, compare_tokens
from language_models import VOCABULARY, decoder
from llama import FAULTS, PROMPT, llama

CACHES: Final = ("u8", "f32")


def draw(number: int, tokens: int, rng: random.Random, counts: Counter[str], folder: Path) -> None:
    """Compare the next pair, print what is named, and count: healthy models with even numbers, faults with odd ones."""
    seed, prompt = rng.randrange(1 << 16), [rng.randrange(VOCABULARY) for _ in range(PROMPT)]
    cache, right = CACHES[number // 2 % len(CACHES)], folder / "right.xml"
    side = f"openvino[KV_CACHE_PRECISION={cache}]"
    if number % 2:
        fault = [*FAULTS][number // 2 // len(CACHES) % len(FAULTS)]
        irrun.save_model(llama(seed, cached=True), right)
        irrun.save_model(llama(seed, cached=True, fault=fault), folder / "wrong.xml")
        comparison = compare_tokens(f"{right}", f"{side}:{folder / 'wrong.xml'}", prompt, tokens)
        first = comparison.first
        named = None if first is None else (first.layer.name, first.layer.sample + 1)
        counts[f"{cache}: faults"] += 1
        counts[f"{cache}: faults that differ"] += comparison.verdict == "differ"
        counts[f"{cache}: faults whose layer and step are named"] += named in FAULTS[fault]
        what = f"{fault}: {comparison.verdict} at {named}"
    else:
        build = (decoder, llama)[number // 4 % 2]
        model = decoder(seed=seed) if build is decoder else llama(seed, cached=True)
        irrun.save_model(model, right)
        comparison = compare_tokens(f"{right}", f"{side}:{right}", prompt, tokens)
        counts[f"{cache}: healthy"] += 1
        counts[f"{cache}: healthy that agree"] += comparison.agrees
        counts[f"{cache}: healthy with another token"] += comparison.other_token is not None
        what = f"healthy {build.__name__}: {comparison.verdict}"
    print(f"{cache}, {what}, {_other_token(comparison)}", flush=True)


def _other_token(comparison: Comparison) -> str:
    if comparison.other_token is None:
        return f"the same {len(comparison.steps)} tokens"
    number, step = comparison.other_token
    return f"another token in step {number + 1}, margin {step.margin:.2g} of {step.allowed:.2g}"
