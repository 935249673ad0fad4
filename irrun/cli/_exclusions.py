"""Combinations of options that a command does not take, as a table beside the command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import click

__all__ = ["Exclusion", "formats", "refuse"]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A combination of options that is refused: one of ``options``, with one of ``others`` if there are any.

    It is allowed if one of ``unless`` is passed as well. Options are named as users write them (``--fix``), arguments
    by their parameter, a choice by ``--format sarif``, and a fact that the command knows by its words. In ``message``,
    ``{option}`` and ``{other}`` are those that were passed, and ``{form}`` is the value of ``--format``.
    """

    options: tuple[str, ...]
    message: str
    others: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


def formats(*names: str) -> tuple[str, ...]:
    """Return the options that choose one of several formats."""
    return tuple(f"--format {name}" for name in names)


def refuse(exclusions: Sequence[Exclusion], *facts: str) -> None:
    """Raise click.UsageError for the first combination that the user has passed.

    ``facts`` are words of the table that the command finds to be true, such as ``standard input``.
    """
    context = click.get_current_context()
    passed = {*facts, *_passed(context)}
    for exclusion in exclusions:
        option = next((name for name in exclusion.options if name in passed), None)
        other = next((name for name in exclusion.others if name in passed), None)
        if option is not None and bool(exclusion.others) == (other is not None) and passed.isdisjoint(exclusion.unless):
            form = context.params.get("form")
            raise click.UsageError(exclusion.message.format(option=option, other=other, form=form))


def _passed(context: click.Context) -> Iterator[str]:
    """Yield the options and arguments whose value is not the default, under each name, and the value of each choice."""
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if isinstance(param.type, click.Choice):
            yield from (f"{name} {value}" for name in param.opts)
        if not _is_empty(value) and value != param.default:
            yield from param.opts


def _is_empty(value: Any) -> bool:
    return value is None or value is False or (isinstance(value, (tuple, list, dict)) and not value)
