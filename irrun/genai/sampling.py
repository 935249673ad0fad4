"""How the next token is chosen: the settings, and the choice from the logits of one position."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from irrun.diagnostics import ExecutionError, FeedError, diagnostic
from irrun.genai.folder import Folder, Json

__all__ = ["Sampler", "Sampling", "settings_of"]

_TOKENS: Final = 256
"""The most new tokens unless the folder or the caller says otherwise, so that a model without an end does end."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """The settings of a generation.

    - ``max_new_tokens`` is the most tokens to generate, ``min_new_tokens`` the number before which none of ``eos`` is
      chosen.
    - Without ``do_sample``, the likeliest token is chosen. With it, a token is drawn: from the ``top_k`` likeliest ones
      (0: from all), whose logits are divided by ``temperature``; of these, from those that are at least ``min_p`` times
      as likely as the likeliest, and from the fewest of the likeliest that together have the probability ``top_p``.
      ``seed`` starts the random numbers.
    - ``repetition_penalty`` divides the positive logits of tokens that the prompt or the text already has, and
      multiplies the negative ones.
    - ``stop`` are texts at which the generation ends; the result does not hold them. ``eos`` are the ids of tokens at
      which it ends.

    Raises FeedError (IR802) for a setting that makes no sense.
    """

    max_new_tokens: int = _TOKENS
    min_new_tokens: int = 0
    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    eos: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for name, least in (("max_new_tokens", 1), ("min_new_tokens", 0), ("top_k", 0), ("seed", 0)):
            _require(
                _is_whole(getattr(self, name)) and getattr(self, name) >= least, self, name, f"a whole number ≥ {least}"
            )
        for name in ("temperature", "repetition_penalty"):
            _require(_is_number(getattr(self, name)) and getattr(self, name) > 0, self, name, "a number > 0")
        _require(_is_number(self.top_p) and 0 < self.top_p <= 1, self, "top_p", "a number > 0 and ≤ 1")
        _require(_is_number(self.min_p) and 0 <= self.min_p < 1, self, "min_p", "a number ≥ 0 and < 1")
        good = isinstance(self.stop, tuple) and all(isinstance(text, str) and text for text in self.stop)
        _require(good, self, "stop", "a tuple of texts that are not empty")
        object.__setattr__(self, "eos", frozenset(self.eos))

    def changed(self, **settings: Any) -> Sampling:
        """Return these settings with some others. Those that are None stay. Raises FeedError (IR802)."""
        known = {field.name for field in fields(self)}
        for name in settings.keys() - known:
            message = f"there is no setting {name}"
            raise FeedError(diagnostic("IR802", message, help=f"the settings are {', '.join(sorted(known))}"))
        return replace(self, **{name: value for name, value in settings.items() if value is not None})


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.floating, np.integer)) and math.isfinite(value)


def _require(is_good: bool, settings: Sampling, name: str, what: str) -> None:
    """Raise FeedError (IR802) for a bad setting."""
    if not is_good:
        message = f"{name} is {str(getattr(settings, name))[:40]}"
        raise FeedError(diagnostic("IR802", message, help=f"pass {what}"))


def settings_of(folder: Folder, end: Iterable[int]) -> Sampling:
    """Return the settings that the files of a folder state, for a tokenizer with the end tokens ``end``.

    As in openvino_genai, generation_config.json says whether tokens are drawn. The ends are those of
    generation_config.json, or else of config.json, or else of the tokenizer. ``max_length`` of the file is not read: it
    also counts the prompt. Raises ReadError (IR802) for values that are no settings.
    """
    file = folder.generation
    numbers = {name: file.number(name) for name in ("temperature", "top_p", "min_p", "repetition_penalty")}
    wholes = {name: file.number(name, whole=True) for name in ("max_new_tokens", "min_new_tokens", "top_k")}
    eos = file.ids("eos_token_id") or folder.config.ids("eos_token_id") or tuple(end)
    sampling = Sampling(do_sample=file.flag("do_sample"), stop=_stop(file), eos=frozenset(eos))
    for name, value in (numbers | wholes).items():
        try:
            sampling = sampling.changed(**{name: value})
        except FeedError as error:
            (bad,) = error.diagnostics
            raise file.refuse(name, bad.message, (bad.help or "").replace("pass", "write")) from None
    return sampling


def _stop(file: Json) -> tuple[str, ...]:
    """Return the entry ``stop_strings``: a text, or a list of texts. Raises ReadError (IR802)."""
    value = file.data.get("stop_strings")
    texts = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) and text for text in texts):
        raise file.refuse("stop_strings", "stop_strings is not a list of texts", "write a list of texts")
    return tuple(texts)


class Sampler:
    """Chooses one token after the other. ``seen`` are the ids of the prompt."""

    def __init__(self, sampling: Sampling, seen: Iterable[int]) -> None:
        self.sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._seen = set(seen)
        self._count = 0

    def __call__(self, logits: np.ndarray) -> int:
        """Return the id of the next token.

        ``logits`` are f32 [vocabulary] and are not changed. Raises ExecutionError (IR605) if they hold no number.
        """
        sampling = self.sampling
        ends = self._count < sampling.min_new_tokens and sampling.eos
        if sampling.repetition_penalty != 1 or ends:
            logits = logits.copy()
        if sampling.repetition_penalty != 1:
            seen = np.fromiter((id for id in self._seen if 0 <= id < logits.size), np.intp)
            old = logits[seen]
            logits[seen] = np.where(old > 0, old / sampling.repetition_penalty, old * sampling.repetition_penalty)
        if ends:
            logits[[id for id in sampling.eos if 0 <= id < logits.size]] = -np.inf
        best = int(logits.argmax())  # the first NaN, if there is one
        if not np.isfinite(logits[best]):
            message = (
                f"the logits have {'NaN' if np.isnan(logits[best]) else 'no finite number'}, so no token can be chosen"
            )
            raise ExecutionError(diagnostic("IR605", message, help="`irrun run --nan` finds the layer that makes it"))
        id = self._drawn(logits) if sampling.do_sample else best
        self._seen.add(id)
        self._count += 1
        return id

    def _drawn(self, logits: np.ndarray) -> int:
        """Return the id of a token that is drawn at random."""
        sampling = self.sampling
        ids = np.arange(logits.size)
        if 0 < sampling.top_k < logits.size:
            ids = np.argpartition(-logits, sampling.top_k - 1)[: sampling.top_k]
        ids = ids[np.argsort(-logits[ids], kind="stable")]
        scaled = logits[ids].astype(np.float64) / sampling.temperature
        odds = np.exp(scaled - scaled[0])
        odds = odds[odds >= sampling.min_p]  # relative to the likeliest, whose odds are 1
        if sampling.top_p < 1:
            sums = np.cumsum(odds)
            odds = odds[: int(np.searchsorted(sums, sampling.top_p * sums[-1])) + 1]
        sums = np.cumsum(odds)
        place = int(np.searchsorted(sums, self._random.random() * sums[-1], side="right"))
        return int(ids[min(place, odds.size - 1)])
