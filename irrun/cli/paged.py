"""``irrun paged`` (compare): Compare a stateful model with its paged form."""

from __future__ import annotations

import click
from rich.console import Console

from irrun.base.text import printable
from irrun.cli import _completion, _errors, _terminal
from irrun.cli._input_options import seed_option
from irrun.cli._options import format_option
from irrun.debug.paged import Serving, serving
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
    has been evicted. The logits of each token must be those of the stateful model. For the first token that differs,
    its block, the first layer that differs and the cause are named.

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
    out.print(f"allowed difference of a logit: {found.allowed:.3g}")
    for schedule in found.schedules:
        if schedule.fault is not None:
            fault = schedule.fault
            place = f"call {fault.call}, sequence {fault.sequence}, token {fault.position}"
            out.print(f"{schedule.name}: {place} (block {fault.block}, slot {fault.slot}): {fault.difference:.3g}")
            if fault.layer is not None:
                out.print(f"  first differs in {found.paged}:{fault.line}: {printable(fault.layer)}")
            if fault.cause is not None:
                out.print(f"  {printable(fault.cause)}")
