"""Commands whose options fill one dataclass, in place of a parameter for each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_type_hints

__all__ = ["with_settings"]

_Settings = TypeVar("_Settings")


def with_settings(kind: type[_Settings]) -> Callable[[Callable[[_Settings], int]], Callable[..., int]]:
    """Return a decorator for a command that takes an instance of the dataclass ``kind``.

    Each field holds the option or argument of its name. A field whose type is a dataclass is filled in the same way,
    so that options that commands share (see ``irrun.cli._comparison_options``) come with a dataclass of their own.
    """

    def decorate(command: Callable[[_Settings], int]) -> Callable[..., int]:
        @functools.wraps(command)
        def run(**options: Any) -> int:
            settings = _filled(kind, options)
            assert not options, f"{kind.__name__} has no field for {', '.join(options)}"
            return command(settings)

        return run

    return decorate


def _filled(kind: type[_Settings], options: dict[str, Any]) -> _Settings:
    """Return an instance of a dataclass, and take the values of its fields out of ``options``."""
    types: Mapping[str, Any] = get_type_hints(kind)
    assert is_dataclass(kind)
    values = {
        field.name: _filled(types[field.name], options) if is_dataclass(types[field.name]) else options.pop(field.name)
        for field in fields(kind)
    }
    return kind(**values)
