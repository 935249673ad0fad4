"""Small random decoders whose weights are in int4, two to four of which int4 destroys unless they are exempted.

A destroyed layer reads values of which some channels are 40 times smaller than the others, with weights that are 40
times greater there. In floating point, this changes nothing. In int4, a group with such a weight has so great a step
that the other weights of the group become 0.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import irrun
from irrun import build as b
from language_models import decoder

VOCABULARY, WIDTH, LAYERS, GROUP, STRENGTH = 120, 32, 2, 16, 40
POSITIONS = 24
NAMES = [f"{layer}/{name}" for layer in range(LAYERS) for name in ("v", "o", "up", "down")]
RTOL, ATOL = 0.125, 0.0625


def int4(weight: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of -8 to 7 [rows, groups, group] and scales in f16 [rows, groups, 1] of a matrix [rows, columns]."""
    groups = weight.reshape(len(weight), -1, group)
    greatest = np.take_along_axis(groups, np.abs(groups).argmax(-1, keepdims=True), -1)
    scales = (greatest / -8).astype(np.float16)
    return np.clip(np.rint(groups / scales.astype(np.float32)), -8, 7), scales


def compressed(weight: np.ndarray, group: int, name: str) -> Any:
    """Return the layers that decompress a matrix in int4, as NNCF writes them."""
    codes, scales = int4(weight, group)
    y = b.Convert(b.constant(codes.astype(np.int8).astype(ml_dtypes.int4), "i4", name=name), destination_type="f16")
    y = b.Reshape(b.Multiply(y, b.constant(scales)), np.array(weight.shape), special_zero=False)
    return b.Convert(y, destination_type="f32")


@dataclass(frozen=True)
class Planted:
    """A decoder in which int4 destroys the layers ``names``."""

    seed: int
    names: frozenset[str]

    @staticmethod
    def drawn(seed: int) -> Planted:
        """Return the first decoder from ``seed`` on in which each of the exemptions is needed, and they are enough."""
        while True:
            rng = np.random.default_rng(seed)
            chosen = Planted(seed, frozenset(rng.choice(NAMES, rng.integers(2, 5), replace=False).tolist()))
            true = chosen.logits(chosen.twin())
            kept = [chosen.names, *(chosen.names - {name} for name in sorted(chosen.names))]
            texts = (_is_same_text(true, chosen.logits(chosen.compressed(names))) for names in kept)
            if next(texts) and not any(texts):
                return chosen
            seed += 1000

    def twin(self) -> irrun.Model:
        """Return the decoder in f32."""
        return self._built(None)

    def compressed(self, exempted: Collection[str]) -> irrun.Model:
        """Return the decoder in int4, except for some layers and the head."""
        return self._built({*exempted, "head"})

    def _built(self, exempted: Collection[str] | None) -> irrun.Model:
        def product(name: str, x: Any, weight: np.ndarray, transpose_b: bool) -> Any:
            by_rows = weight if transpose_b else weight.T
            if name in self.names:
                gain = np.ones(WIDTH, np.float32)
                gain[::GROUP] = gain[3::GROUP] = 1 / STRENGTH
                x, by_rows = b.Multiply(x, gain, name=f"{name}/gain"), by_rows / gain
            if exempted is None or name in exempted:
                weight = by_rows if transpose_b else by_rows.T
                return b.MatMul(x, b.constant(weight, name=f"{name}/w"), transpose_b=transpose_b, name=name)
            return b.MatMul(x, compressed(by_rows, GROUP, f"{name}/w"), transpose_b=True, name=name)

        return decoder(VOCABULARY, width=WIDTH, layers=LAYERS, seed=self.seed, product=product)

    @property
    def feeds(self) -> dict[str, np.ndarray]:
        """The inputs of a prompt of random tokens."""
        return {
            "input_ids": np.random.default_rng(self.seed).integers(0, VOCABULARY, (1, POSITIONS)),
            "attention_mask": np.ones((1, POSITIONS), np.int64),
            "position_ids": np.arange(POSITIONS)[None],
            "beam_idx": np.zeros(1, np.int32),
        }

    def logits(self, model: irrun.Model) -> np.ndarray:
        """Return the logits of the prompt, [positions, vocabulary]."""
        return irrun.compile(model)(self.feeds)["logits"][0]


def _is_same_text(true: np.ndarray, other: np.ndarray) -> bool:
    """Return whether the greedy tokens are the same, near ties aside."""
    missing = true.max(-1) - true[np.arange(len(true)), other.argmax(-1)]
    return bool((missing <= ATOL + RTOL * true.std(-1)).all())
