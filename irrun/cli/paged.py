"""``irrun paged`` (compare): Compare a stateful model with its paged form."""

from __future__ import annotations

from textwrap import fill

import click
from rich.console import Console

from irrun.base.text import counted, printable
from irrun.cli import _completion, _errors, _terminal
from irrun.cli._comparison import content_note
from irrun.cli._input_options import seed_option
from irrun.cli._options import format_option
from irrun.debug.paged import RELATIVE, Serving, serving
from irrun.diagnostics import IrrunError

__all__ = ["command"]


@click.command("paged")
@click.argument("stateful", metavar="STATEFUL", shell_complete=_completion.files)
@click.argument("paged", metavar="PAGED", shell_complete=_completion.files)
@click.option(
    "--tokens",
    type=click.IntRange(min=3),
    metavar="N",
    default=70,
    show_default=True,
    help="The number of tokens of each of two prompts.",
)
@click.option(
    "--block-size",
    type=click.IntRange(min=1),
    metavar="N",
    default=32,
    show_default=True,
    help="The tokens of a block.",
)
@click.option(
    "--calls",
    metavar="FILE",
    shell_complete=_completion.files,
    help="Judge the calls of a server instead, from an .npz file: N.NAME is an input of call N, and N.sequences the "
    "sequence of each of its tokens.",
)
@seed_option("prompts")
@format_option("text", "json")
def command(stateful: str, paged: str, tokens: int, block_size: int, calls: str | None, seed: int, form: str) -> int:
    """Compare a stateful model with its paged form.

    STATEFUL is a language model with variables. PAGED is the same model after OpenVINO's transformation to paged
    attention, as openvino.save_model writes it. irrun runs both on two random prompts: whole, in permuted blocks, in
    pieces, in calls that continue one prompt and begin another, with a block that both prompts share, and after a block
    has been evicted. A token agrees if none of its logits differs from that of the stateful model by more than 0.0001
    times the largest absolute logit of that model. For the first token that differs, its block, the first layer that
    differs and the cause are named. A cause is named only if it is proved: by a run of the corrected model, whose token
    then agrees, or by values of caches and layers that are those of the stateful model. Where the token differs still,
    the text says so.

    Exit status: 0 both agree, 1 they differ, 2 bad usage, an unreadable file or other inputs.
    """
    if tokens < block_size + 2:
        raise click.UsageError(f"{tokens} tokens do not fill a block of {block_size} and two more; raise --tokens")
    try:
        found = serving(stateful, paged, tokens=tokens, slots=block_size, seed=seed, calls=calls)
    except IrrunError as error:
        status = max(2, _errors.exit_status(error.diagnostics))
        _errors.show(error.diagnostics)
        if form == "json":
            _errors.print_json("paged", status, str(error), error)
        return status
    if form == "json":
        _terminal.print_json(found.record())
    else:
        _print(_terminal.console(), found)
    return 0 if found.agrees else 1


def _print(out: Console, found: Serving) -> None:
    rows = [
        (s.name, str(s.calls), str(s.tokens), f"{s.difference:.3g}", "agrees" if s.fault is None else "differs")
        for s in found.schedules
    ]
    columns = ("schedule", "calls", "tokens", "difference", "")
    _terminal.print_table(out, columns, rows, right=("calls", "tokens", "difference"))
    for name, reason in found.omitted.items():
        _line(out, f"not run: {name}: {printable(reason)}")
    largest = f"{RELATIVE:g} × {found.allowed / RELATIVE:.3g}, the largest absolute logit of the stateful model"
    _line(out, f"a token agrees if each logit differs by at most {found.allowed:.3g} ({largest})")
    is_first = True
    for schedule in found.schedules:
        if schedule.fault is not None:
            fault = schedule.fault
            place = f"call {fault.call}, sequence {fault.sequence}, token {fault.position}"
            out.print(f"{schedule.name}: {place} (block {fault.block}, slot {fault.slot}): {fault.difference:.3g}")
            if fault.layer is not None:
                out.print(f"  first differs in {found.paged}:{fault.line}: {printable(fault.layer)}")
            if is_first:
                _line(out, f"  cause: {printable(fault.cause or 'not proved')}")
            is_first = False
    faults = sum(schedule.fault is not None for schedule in found.schedules)
    run = f"{counted(len(found.schedules), 'schedule')}, {sum(s.tokens for s in found.schedules):,} tokens"
    if faults:
        out.print(f"verdict: the paged form differs in {faults} of {run}")
    else:
        if found.content is not None:
            _line(out, f"{content_note(found.content)} these tokens did not show it, more --tokens may")
        out.print(f"verdict: both forms agree in {run}")


def _line(out: Console, text: str) -> None:
    """Print a text in lines as wide as the terminal. Names are not divided."""
    out.print(fill(text, out.width, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False))
