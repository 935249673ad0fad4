"""``irrun explain`` (check): Explain the code of a finding, such as IR401.

The texts and examples are the pages in ``irrun/explanations``, one for each code.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

import click
from rich.console import Console

from irrun.cli import _completion, _terminal
from irrun.cli._options import format_option
from irrun.codes import CODES, Code
from irrun.model.lookup import nearest

__all__ = ["command"]


@click.command("explain")
@click.argument("code", required=False, shell_complete=_completion.codes)
@format_option("text", "json")
def command(code: str | None, form: str) -> None:
    """Explain the code of a finding, such as IR401.

    CODE may also be a name, such as dims-mismatch. The beginning of a code or of a word in a name lists the codes that
    have it: IR4, or dims. Without CODE, all codes are listed.
    """
    out = _terminal.console()
    if code is None:
        _print_codes(out, CODES.values(), form)
        return
    names = {c.name: c for c in CODES.values()} | {c.id.lower(): c for c in CODES.values()}
    known = names.get(code.lower())
    if known is None:
        begun = [c for c in CODES.values() if _belongs(c, code.lower())]
        if begun:
            _print_codes(out, begun, form)
            return
        near = nearest(code, names)
        help = f"did you mean {names[near[0]].id} {names[near[0]].name}?" if near else "irrun explain lists the codes"
        raise click.UsageError(f"there is no code {code}; {help}")
    if form == "json":
        _terminal.print_json({"codes": [_record(known) | {"page": known.page}]})
        return
    _terminal.title(out, f"{known.id} {known.name} ({known.kind.severity})")
    width = min(out.width, 80)
    out.print("\n" + textwrap.fill(known.doc, width))
    _print_page(out, known.page, width)


def _belongs(code: Code, word: str) -> bool:
    """Return whether a code begins with ``word`` (ir4, 4, ir4xx), or its name has a word that does."""
    digits = word.removeprefix("ir").rstrip("x")
    is_group = digits.isdecimal() or (not digits and word.startswith("ir"))
    return code.id[2:].startswith(digits) if is_group else any(part.startswith(word) for part in _parts(code))


def _parts(code: Code) -> list[str]:
    """Return the ends of a code's name that begin with a word: edge-dims-mismatch, dims-mismatch, mismatch."""
    words = code.name.split("-")
    return ["-".join(words[start:]) for start in range(len(words))]


def _record(code: Code) -> dict[str, str]:
    return {"code": code.id, "name": code.name, "severity": code.kind.severity, "text": code.doc}


def _print_codes(out: Console, codes: Iterable[Code], form: str) -> None:
    if form == "json":
        _terminal.print_json({"codes": [_record(code) for code in codes]})
        return
    _terminal.print_table(out, ("code", "severity", "name"), [(c.id, c.kind.severity, c.name) for c in codes])


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
