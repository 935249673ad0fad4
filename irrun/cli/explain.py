"""``irrun explain CODE``: what a finding means and how to fix it, with a wrong example and a right one.

The texts and examples are the pages in ``irrun/explanations``, one for each code.
"""

from __future__ import annotations

import difflib
import textwrap
from importlib import resources

import click
from rich.console import Console

from irrun.cli import _terminal
from irrun.diagnostics import CODES

__all__ = ["command"]


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain the code of a finding, such as IR401.

    CODE may also be a name, such as dims-mismatch. Without CODE, all codes are listed.
    """
    out = _terminal.console()
    if code is None:
        rows = [(c.id, c.severity, c.name) for c in CODES.values()]
        _terminal.print_table(out, ("code", "severity", "name"), rows)
        return
    names = {c.name: c for c in CODES.values()} | {c.id.lower(): c for c in CODES.values()}
    known = names.get(code.lower())
    if known is None:
        near = difflib.get_close_matches(code.lower(), names, 1)
        help = f"did you mean {names[near[0]].id} {names[near[0]].name}?" if near else "irrun explain lists the codes"
        raise click.UsageError(f"there is no code {code}; {help}")
    _terminal.title(out, f"{known.id} {known.name} ({known.severity})")
    width = min(out.width, 80)
    out.print("\n" + textwrap.fill(known.doc, width))
    page = resources.files("irrun") / "explanations" / f"{known.id}.md"
    _print_page(out, page.read_text("utf-8"), width)


def _print_page(out: Console, page: str, width: int) -> None:
    """Print a page of Markdown that consists of headings, paragraphs and fenced code.

    Paragraphs are filled to ``width`` columns. Code is indented and otherwise unchanged.
    """
    is_code = False
    for part in page.split("```"):
        if is_code:
            info, _, code = part.partition("\n")
            name = info.partition(" ")[2]
            out.print((f"\n{name}:\n" if name else "\n") + textwrap.indent(code.rstrip(), "    "))
        for paragraph in part.strip().split("\n\n") if not is_code else ():
            if paragraph.startswith("## "):
                out.print()
                _terminal.title(out, paragraph.removeprefix("## "))
            elif paragraph:
                out.print("\n" + textwrap.fill(paragraph, width))
        is_code = not is_code
