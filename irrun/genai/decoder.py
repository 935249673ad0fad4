"""The inputs of a language model for token ids, and a compiled one: the logits of the last position out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from irrun.diagnostics import Diagnostic, ExecutionError, ModelError, diagnostic
from irrun.model import Layer, Model
from irrun.running.executor import Executable

__all__ = [
    "INPUTS",
    "Decoder",
    "Feeder",
    "input_name",
    "is_stateful",
    "is_too_narrow",
    "last_logits",
    "logits_of",
    "unfed",
]

INPUTS: Final = ("input_ids", "attention_mask", "position_ids", "beam_idx", "token_type_ids")
"""The inputs that a pipeline can feed. A model may lack all but the first."""


def input_name(model: Model, parameter: Layer) -> str | None:
    """Return which of ``INPUTS`` a Parameter is, or None."""
    return next((name for name in model.input_names(parameter) if name in INPUTS), None)


def is_stateful(model: Model) -> bool:
    """Return whether the model keeps the past in variables."""
    return any(layer.type == "ReadValue" for layer in model.layers.values())


def logits_of(model: Model) -> Layer | None:
    """Return the Result that holds the logits: the one with this name, or the only one."""
    results = model.results
    named = next((result for result in results if "logits" in model.result_names(result)), None)
    return named or (results[0] if len(results) == 1 else None)


def unfed(model: Model) -> list[Diagnostic]:
    """Return a diagnostic (IR805) for each input that a pipeline cannot feed, and for missing ones."""
    found: list[Diagnostic] = []
    names = [input_name(model, parameter) for parameter in model.parameters]
    for parameter, name in zip(model.parameters, names):
        own = max(model.input_names(parameter), key=len)
        if name is None:
            is_cache = "past_key_values" in own or "past." in own
            message = f'no generation can feed the input "{own}"'
            help = "export the model again, without --disable-stateful" if is_cache else (
                f"a language model takes {', '.join(INPUTS)}")  # fmt: skip
            found.append(_at(model, parameter, message, help))
        elif name == "position_ids" and any(p.shape is not None and p.shape.rank == 3 for p in parameter.outputs):
            message = 'the input "position_ids" is 3D, as in models that also read pictures'
            found.append(_at(model, parameter, message, "irrun generates from text alone"))
    if "input_ids" not in names:
        embeds = next((p for p in model.parameters if "inputs_embeds" in model.input_names(p)), None)
        if embeds is None:
            message, help = "the model has no input input_ids", "pass the folder of a language model"
            found.append(diagnostic("IR805", message, source=model.source, node=0, help=help))
    if logits_of(model) is None:
        message, help = "the model has no output logits", "pass the folder of a language model"
        found.append(diagnostic("IR805", message, source=model.source, node=0, help=help))
    return found


def _at(model: Model, layer: Layer, message: str, help: str) -> Diagnostic:
    return diagnostic("IR805", message, source=model.source, node=layer.node, layer=layer.name, help=help)


def is_too_narrow(columns: int | None, tokens: int | None) -> bool:
    """Return whether so many logits are for something else than the tokens. A model may lack some of its tokenizer."""
    return columns is not None and tokens is not None and 2 * columns < tokens


class Feeder:
    """The inputs of a language model, as new tokens come.

    A stateful model keeps keys and values of the past in its variables, so that only new tokens are fed. A model
    without variables gets all tokens each time. Raises ModelError (IR805) for a model with other inputs.
    """

    def __init__(self, model: Model) -> None:
        if problems := unfed(model):
            raise ModelError(problems)
        self._inputs = [(input_name(model, parameter), parameter.outputs[0].type) for parameter in model.parameters]
        self._stateful = is_stateful(model)
        self._past: list[int] = []
        self.length = 0
        """The number of tokens that were fed last."""

    def reset(self) -> None:
        """Forget all tokens."""
        self._past = []

    def __call__(self, ids: Sequence[int]) -> dict[int, np.ndarray]:
        """Return the inputs by position, each [1, length], for more tokens. ``ids`` are at least one token."""
        self._past += ids
        total = len(self._past)
        fed = list(ids) if self._stateful else self._past
        self.length, first = len(fed), total - len(fed)
        values = {
            "input_ids": lambda: [fed],
            "attention_mask": lambda: np.ones((1, total)),
            "position_ids": lambda: np.arange(first, total)[None],
            "beam_idx": lambda: [0],
            "token_type_ids": lambda: np.zeros((1, len(fed))),
        }
        return {
            place: np.asarray(values[name](), np.int64 if type is None else type.dtype)
            for place, (name, type) in enumerate(self._inputs)
            if name is not None
        }


class Decoder:
    """Feeds a compiled model with tokens, as ``Feeder`` does.

    ``tokens`` is the number of tokens of the tokenizer, if it is known: a model with less than half as many logits
    chooses something else. Raises ModelError (IR805) for a model with other inputs.
    """

    def __init__(self, executable: Executable, tokens: int | None = None) -> None:
        self._executable = executable
        self._tokens = tokens
        self._feeder = Feeder(executable.model)
        logits = logits_of(executable.model)
        assert logits is not None
        self._output = executable.model.results.index(logits)

    def reset(self) -> None:
        """Forget all tokens."""
        self._feeder.reset()
        self._executable.reset_state()

    def __call__(self, ids: Sequence[int]) -> np.ndarray:
        """Return the logits after more tokens, f32 [vocabulary]. ``ids`` are at least one token.

        Raises ExecutionError if the model fails, and IR605 if its output is not [1, length, vocabulary].
        """
        logits = self._executable(self._feeder(ids))[self._output]
        if logits.ndim not in (2, 3) or not logits.size or (logits.shape[0] != 1 and logits.ndim == 3):
            shape = f"[{','.join(map(str, logits.shape))}]"
            raise self._refused(f"the logits are {shape}, not [1,{self._feeder.length},vocabulary]")
        if is_too_narrow(logits.shape[-1], self._tokens):
            raise self._refused(f"the logits have {logits.shape[-1]:,} columns, but there are {self._tokens:,} tokens")
        return last_logits(logits).astype(np.float32, copy=False)

    def _refused(self, message: str) -> ExecutionError:
        help = "pass the folder of a language model"
        return ExecutionError(diagnostic("IR605", message, source=self._executable.model.source, help=help))


def last_logits(logits: np.ndarray) -> np.ndarray:
    """Return those of the last token, [vocabulary], of logits [1, length, vocabulary] or [length, vocabulary]."""
    return logits.reshape(-1, logits.shape[-1])[-1]
