"""The networks of the pairs, with inputs on which each fault shows: a prompt of several tokens, one of them masked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import irrun
from irrun import build as b
from language_models import VOCABULARY, decoder
from llama import llama
from small_networks import bert, resnet

_TOKENS: Final = 12
_WORDS: Final = 30
"""The number of words that ``bert`` knows."""


@dataclass(frozen=True)
class Network:
    """A network in a file, and what draws its inputs with a seed."""

    path: Path
    draw: Callable[[np.random.Generator], dict[str, np.ndarray]]

    def inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Return the inputs that a seed draws."""
        return self.draw(np.random.default_rng(seed))


def networks(folder: Path) -> Iterator[Network]:
    """Save each network, and yield it."""
    import openvino as ov

    for build, draw in ((resnet, _image), (bert, lambda rng: _text(rng, _WORDS))):
        ov.save_model(build(ov), folder / f"{build.__name__}.xml", compress_to_fp16=False)
        yield Network(folder / f"{build.__name__}.xml", draw)
    for build, draw in ((decoder, _cached), (llama, _prompt), (mobile, _image)):
        irrun.save_model(build(), folder / f"{build.__name__}.xml")
        yield Network(folder / f"{build.__name__}.xml", draw)


def _image(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"image": rng.normal(size=(1, 3, 64, 64)).astype(np.float32)}


def _text(rng: np.random.Generator, words: int) -> dict[str, np.ndarray]:
    mask = np.ones((1, _TOKENS), np.int64)
    mask[0, 3] = 0
    return {"input_ids": rng.integers(0, words, (1, _TOKENS)), "attention_mask": mask}


def _prompt(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {**_text(rng, VOCABULARY), "position_ids": np.arange(_TOKENS)[None]}


def _cached(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {**_prompt(rng), "beam_idx": np.zeros(1, np.int32)}


def mobile() -> irrun.Model:
    """Build three blocks of convolutions, whose middle one has a group for each channel or for each four channels."""
    rng = np.random.default_rng(0)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(0, np.prod(shape[1:]) ** -0.5, shape).astype(np.float32)

    def convolved(x: Any, filters: np.ndarray, stride: int = 1) -> Any:
        build = b.GroupConvolution if filters.ndim == 5 else b.Convolution
        pads, strides = [filters.shape[-1] // 2] * 2, [stride, stride]
        y = build(x, filters, strides=strides, dilations=[1, 1], pads_begin=pads, pads_end=pads)
        count = filters.shape[0] * filters.shape[1] if filters.ndim == 5 else filters.shape[0]
        return b.Add(y, weights(1, count, 1, 1))

    image = b.parameter([1, 3, 64, 64], "f32", name="image")
    x = b.Clamp(convolved(image, weights(8, 3, 3, 3), 2), min=0, max=6)
    for each in (1, 4, 1):
        y = b.Clamp(convolved(x, weights(24, 8, 1, 1)), min=0, max=6)
        y = b.Clamp(convolved(y, rng.normal(0, 0.3, (24 // each, each, each, 3, 3)).astype(np.float32)), min=0, max=6)
        x = b.Add(x, convolved(y, weights(8, 24, 1, 1)))
    pooled = b.ReduceMean(x, [2, 3], keep_dims=False)
    return b.model({"scores": b.MatMul(pooled, weights(8, 10))}, inputs=[image], name="mobile")
