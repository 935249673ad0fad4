"""Compare two language models that read the same tokens, so that each choice of a token is judged by itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

import numpy as np

from irrun.debug.comparison import Comparator, compare
from irrun.debug.inputs import own_positions
from irrun.debug.pairing import Renames
from irrun.debug.results import Comparison, Step
from irrun.debug.rounds import OnValue
from irrun.debug.subjects import Subject, model_of
from irrun.debug.tolerances import Tolerances
from irrun.diagnostics import EngineError, FeedError, diagnostic
from irrun.engines import Limits, Loaded, Outputs, Side, open_all, parse_sides, private_folder
from irrun.genai.decoder import Feeder, is_stateful, last_logits, logits_of
from irrun.genai.folder import DETOKENIZER, TOKENIZER, Folder, bad_folder
from irrun.genai.texts import Texts
from irrun.model import Model

__all__ = ["compare_tokens"]

Prompt = str | Sequence[int] | Callable[[Model], Sequence[int]]
"""A text, token ids, or a function that returns them for the model of the reference."""


def compare_tokens(
    reference: str | Side,
    candidate: str | Side,
    prompt: Prompt,
    tokens: int = 64,
    *,
    layers: bool = True,
    tolerances: Tolerances | None = None,
    comparator: Comparator | None = None,
    limits: Limits | None = None,
    renames: Renames | None = None,
    frontier: bool = False,
    on_value: OnValue | None = None,
) -> Comparison:
    """Compare two language models on a prompt and the tokens that the reference chooses after it.

    Both sides read the prompt in the first step and one token in each further step, and keep their state. The token is
    always the likeliest of the reference, so that both sides choose each token after the same text. ``steps`` of the
    result says which tokens they choose, and whether the precision explains a token that is another one. The result
    holds ``tokens`` steps, or fewer if a side fails.

    - ``prompt`` is token ids, or a function that returns them for the model; or, if the folder of a side has a
      tokenizer, a text.
    - The other arguments are those of ``compare``. Without ``layers``, only the outputs are compared, which takes far
      less time.

    Raises the errors of ``compare``; EngineError (IR707) if the reference is no IR file, or if only one side keeps a
    state; ModelError (IR805) if the reference is no language model; ReadError (IR801) for a text without a tokenizer;
    FeedError (IR601) for an empty prompt.
    """
    sides = parse_sides(reference, candidate)
    model = _language_model(sides)
    feeder = Feeder(model)
    texts = _texts(sides, needed=isinstance(prompt, str))
    if isinstance(prompt, str):
        ids = texts.encode(prompt) if texts is not None else []
    else:
        ids = [*map(int, prompt(model) if callable(prompt) else prompt)]
    if not ids:
        raise FeedError(diagnostic("IR601", "the prompt has no tokens", help="pass a prompt that is not empty"))
    logits = logits_of(model)
    assert logits is not None
    output = model.results.index(logits)
    with ExitStack() as stack:
        engines = stack.enter_context(open_all(sides, limits, stack.enter_context(private_folder())))
        loaded = engines[0].load(sides[0].path)
        chosen: list[int] = []
        if isinstance(loaded, Loaded):
            chosen = _chosen(Subject(sides[0], engines[0], loaded, model), feeder, ids, tokens, output)
        fed = [ids, *([id] for id in chosen[: tokens - 1])]
        feeder.reset()
        steps = _Steps(output, [*np.cumsum([*map(len, fed)]).tolist()])
        comparison = compare(
            sides[0],
            sides[1],
            [feeder(some) for some in fed],
            layers=layers,
            keep_state=True,
            tolerances=tolerances,
            comparator=comparator,
            limits=limits,
            renames=renames,
            frontier=frontier,
            running=(engines[0], engines[1]),
            on_value=on_value,
            on_output=steps.add,
        )
    return replace(comparison, steps=tuple(step if texts is None else _named(step, texts) for step in steps.steps))


def _language_model(sides: Sequence[Side]) -> Model:
    """Return the model of the reference. Raises EngineError (IR707) if both sides cannot read the same tokens."""
    models = [model_of(side) for side in sides]
    model = models[0]
    if model is None:
        message = f"{sides[0]} is no IR file, so that its tokens cannot be fed"
        raise EngineError(diagnostic("IR707", message, help="pass an IR file as the reference"))
    stateful = [None if own is None else is_stateful(own) for own in models]
    if stateful[1] is not None and stateful[0] != stateful[1]:
        keeping, other = sides if stateful[0] else sides[::-1]
        message = f"{keeping} keeps the past in variables, and {other} reads it again in each step"
        help = "export both models in the same way, with or without --disable-stateful"
        raise EngineError(diagnostic("IR707", message, help=help))
    return model


def _texts(sides: Sequence[Side], *, needed: bool) -> Texts | None:
    """Return the tokenizer of the first folder that has one. Raises ReadError (IR801) if it is ``needed``."""
    folders = [side.path.parent for side in sides if side.path is not None]
    for folder in folders:
        if all((folder / name).is_file() for name in (TOKENIZER, DETOKENIZER)):
            return Texts(Folder.open(folder))
    if needed:
        help = "pass the folder that optimum-intel has written, or token ids: -i input_ids=[[1,2,3]]"
        raise bad_folder(folders[0], f"a prompt that is a text needs {TOKENIZER} and {DETOKENIZER}", help)
    return None


def _chosen(subject: Subject, feeder: Feeder, prompt: Sequence[int], count: int, output: int) -> list[int]:
    """Return the likeliest tokens after a prompt, or those before a run that fails."""
    positions = own_positions(subject, subject.model) if subject.model is not None else {}
    chosen: list[int] = []
    fed = list(prompt)
    while len(chosen) < count:
        arrays = feeder(fed)
        outcome = subject.engine.infer({at: arrays[number] for at, number in positions.items()})
        if not isinstance(outcome, Outputs):
            break
        fed = [int(np.argmax(last_logits(outcome.outputs[output].array)))]
        chosen += fed
    return chosen


@dataclass
class _Steps:
    """The steps of a comparison, from its outputs. ``output`` is the position of the logits."""

    output: int
    lengths: Sequence[int]
    """The number of tokens that were read after each step."""
    steps: list[Step] = field(default_factory=list)

    def add(
        self, sample: int, position: int, first: np.ndarray, second: np.ndarray, allowed: np.ndarray | None
    ) -> None:
        """Add a step, unless the logits cannot be compared."""
        if position != self.output or first.shape != second.shape or not first.size:
            return
        wide = first.astype(np.float64)
        scale = float(np.sqrt(np.mean(np.square(wide)))) or 1.0
        errors = np.nan_to_num(np.abs(second - wide), nan=math.inf).ravel()
        bounds = None if allowed is None else allowed.ravel()
        worst = int(np.argmax(errors if bounds is None else errors / np.maximum(bounds, np.finfo(np.float32).tiny)))
        own, limits = last_logits(wide), None if allowed is None else last_logits(allowed)
        token, choice = int(np.argmax(own)), int(np.argmax(last_logits(second)))
        other = choice if choice != token else int(np.argsort(own)[-2:][0])
        self.steps.append(
            Step(
                self.lengths[sample],
                token,
                choice,
                float(own[token] - own[other]),
                None if limits is None else float(limits[token] + limits[other]),
                float(errors[worst]) / scale,
                None if bounds is None else float(bounds[worst]) / scale,
            )
        )


def _named(step: Step, texts: Texts) -> Step:
    """Return a step with the texts of its tokens."""
    return replace(step, reference_text=texts.decode([step.reference]), candidate_text=texts.decode([step.candidate]))
