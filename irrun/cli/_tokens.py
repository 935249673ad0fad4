"""The options of `irrun compare` for language models, and the table of their tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from irrun.base.text import apart, counted, printable
from irrun.cli import _terminal
from irrun.cli._exclusions import Exclusion
from irrun.cli._inputs import gather_specs, split
from irrun.cli._options import together
from irrun.debug import Comparison, Step
from irrun.debug.budget import InEffect
from irrun.genai.decoder import input_name
from irrun.model import Model
from irrun.model.lookup import bad_feed

__all__ = ["EXCLUSIONS", "TokenOptions", "show_other_token", "show_steps", "token_options"]

_DEFAULT_TOKENS: Final = 64

EXCLUSIONS: Final = (
    Exclusion(("--prompt",), "{option} is the text that {other} would be; pass one of them", others=("-i",)),
    Exclusion(
        ("--prompt", "--tokens"),
        "{option} decodes one text; leave out {other}",
        others=("--samples", "--seed", "--keep-state"),
    ),
)


@dataclass(frozen=True)
class TokenOptions:
    """How far language models are compared: ``prompt`` is a text, ``tokens`` the number of steps."""

    prompt: str | None
    tokens: int | None

    @property
    def is_passed(self) -> bool:
        """Whether the sides are language models that decode."""
        return self.prompt is not None or self.tokens is not None

    @property
    def count(self) -> int:
        """The number of tokens that both sides choose."""
        return self.tokens or _DEFAULT_TOKENS

    def prompted(self, inputs: Sequence[str], max_memory: int) -> str | Callable[[Model], Sequence[int]]:
        """Return the prompt as ``compare_tokens`` takes it: the text, or the ids that ``inputs`` name."""
        return self.prompt if self.prompt is not None else lambda model: _ids(model, inputs, max_memory)


token_options: Final = together(
    click.option("--prompt", metavar="TEXT", help="The text to continue: compare language models."),
    click.option(
        "--tokens",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"The number of tokens that language models choose. [default: {_DEFAULT_TOKENS}]",
    ),
)
"""The options that fill ``TokenOptions``."""


def _ids(model: Model, inputs: Sequence[str], max_memory: int) -> Sequence[int]:
    """Return the token ids of ``-i input_ids=SPEC``. Raises click.UsageError for other inputs, and FeedError."""
    specs = [item for text in inputs for item in split(model, text)]
    if len(specs) != 1 or input_name(model, model.parameters[specs[0][0]]) != "input_ids":
        raise click.UsageError("language models read one text: pass --prompt TEXT, or -i input_ids=[[1,2,3]] alone")
    number = specs[0][0]
    array = gather_specs(model, dict(specs), 0, max_memory)[number].array
    if array.ndim == 0 or array.size != array.shape[-1]:
        message = f"has the shape [{','.join(map(str, array.shape))}], which is no single text"
        raise bad_feed(model, model.parameters[number], message, "pass the ids of one text: [[1,2,3]]")
    return array.ravel().tolist()


def show_steps(out: Console, comparison: Comparison) -> None:
    """Print the steps 1, 2, 4, 8 and so on, the last one, the worst one and the first with another token."""
    steps = comparison.steps
    if not steps:
        return
    chosen = {2**power - 1 for power in range(len(steps).bit_length())} | {len(steps) - 1}
    chosen.add(max(range(len(steps)), key=lambda number: steps[number].error / (steps[number].explained or 1)))
    if comparison.other_token is not None:
        chosen.add(comparison.other_token[0])
    rows: list[list[str | Text]] = []
    for number in sorted(chosen):
        step = steps[number]
        error, explained = apart(step.error, math.inf if step.explained is None else step.explained)
        style = "" if step.explained is None or step.error <= step.explained else "red"
        rows.append(
            [
                f"{number + 1}",
                f"{step.length}",
                _token(step.reference, step.reference_text),
                _token(step.candidate, step.candidate_text),
                f"{step.margin:.3g}",
                Text(error, style),
                "-" if step.explained is None else explained,
            ]
        )
    out.print()
    _terminal.title(out, f"{counted(len(steps), 'token')}, and the error of the logits over the length")
    columns = ["step", "length", "reference", "candidate", "margin", "error", "explained"]
    right = ("step", "length", "margin", "error", "explained")
    _terminal.print_table(out, columns, rows, right=right, spare=("margin", "candidate", "reference"))


def show_other_token(out: Console, comparison: Comparison) -> None:
    """Print in which step the first token is another one, and whether the precision explains that."""
    if not comparison.steps:
        return
    if comparison.other_token is None:
        out.print(f"   = both choose the same {counted(len(comparison.steps), 'token')}")
        return
    number, step = comparison.other_token
    own, other = _token(step.reference, step.reference_text), _token(step.candidate, step.candidate_text)
    out.print(
        f"   = the first other token is that of step {number + 1}, {other} in place of {own}: {_why(step, comparison)}"
    )


def _why(step: Step, comparison: Comparison) -> str:
    if step.allowed is None:
        return f"margin {step.margin:.2g}"
    margin, allowed = apart(step.margin, step.allowed)
    effects = dict.fromkeys(str(InEffect.of(properties)) for properties in comparison.properties)
    names = " and ".join([name for name in effects if name != "f32"] or ["f32"])
    return f"{'' if step.is_explained else 'not '}explained, margin {margin}; {names} explains {allowed}"


def _token(id: int, text: str) -> str:
    return f'{id} "{printable(text)}"' if text else f"{id}"
