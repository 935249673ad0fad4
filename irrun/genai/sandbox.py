"""Jinja for the templates of strangers: without access to Python, and bounded in time and memory.

This module needs the package jinja2, so it is imported when a template is first read.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from jinja2 import TemplateSyntaxError, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["LARGEST", "RaisedError", "TemplateSyntaxError", "TooMuchError", "environment", "limited"]

LARGEST: Final = 16 << 20
"""The most characters of a text, and the most elements of a list, that a template may make."""
_SECONDS: Final = 10.0
"""The most seconds that a template may run. Those in use take milliseconds."""
_WIDEST: Final = 100_000
"""The largest number that a template may pass to a filter or a method: a width, an indentation, a count."""
_BITS: Final = 100_000
"""The most bits of an integer."""


class RaisedError(Exception):
    """The template has called ``raise_exception``."""


class TooMuchError(Exception):
    """The template takes too much time or memory."""


class limited:  # noqa: N801  (used as a function)
    """Stop the Python code of a template after ``_SECONDS``, by a trace function of this thread.

    A debugger or a measurement of coverage that has this place gets it back.
    """

    def __enter__(self) -> None:
        self._end = time.monotonic() + _SECONDS
        self._steps = 0
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: Any, event: str, _: object) -> Callable[..., Any]:
        self._steps += 1
        if self._steps % 64 == 0 and time.monotonic() > self._end:
            raise TooMuchError(f"it ran for over {_SECONDS:g} s")
        return self._trace


# ---------------------------------------------------------------------------------------------
# sizes


def _require(size: int, most: int = LARGEST) -> None:
    if size > most:
        raise TooMuchError(f"it makes more than {most:,} characters or elements at once")


def _weigh(*values: object) -> int:
    """Return the characters and elements of values, those within lists and mappings too. Raises TooMuchError."""
    size, waiting = 0, list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, (str, bytes)):
            size += len(value)
        elif isinstance(value, (list, tuple, set, frozenset)):
            size += len(value)
            waiting += value
        elif isinstance(value, Mapping):
            size += len(value)
            waiting += [*value.keys(), *value.values()]
        else:
            size += 1
        _require(size)
    return size


def _require_narrow(*values: object) -> None:
    """Raise TooMuchError if one of the arguments of a call is a large number."""
    for value in values:
        if isinstance(value, int):
            _require(abs(value), _WIDEST)


def _require_format(text: object) -> None:
    """Raise TooMuchError if a format (of ``%``, ``format`` or ``strftime``) has a width of more than five digits."""
    if isinstance(text, str) and re.search(r"[0-9]{6}|%[^a-zA-Z%]*\*", text):
        raise TooMuchError("it has a format with a huge width")


def _replaced(text: str, old: str, new: str) -> None:
    _require(len(text) + text.count(old) * max(len(new) - len(old), 0))


def _call_is_small(function: Any, values: tuple[Any, ...]) -> None:
    """Raise TooMuchError for a call of a text's method that makes a huge text."""
    text, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    _require_narrow(*values)
    if not isinstance(text, str):
        return
    if name == "replace" and len(values) > 1 and isinstance(values[0], str) and isinstance(values[1], str):
        _replaced(text, values[0], values[1])
    elif name == "join" and values and isinstance(values[0], (list, tuple)):
        _require(_weigh(values[0]) + len(text) * len(values[0]))
    elif name in ("expandtabs", "translate"):
        _require(len(text) * 16)


# ---------------------------------------------------------------------------------------------
# the environment


class _Generator(CodeGenerator):
    """Compiles ``a ~ b`` to a call of the environment, which looks at the sizes."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:  # noqa: N802
        self.write("environment.joined((")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class _Generation(Extension):
    """The tag ``{% generation %}``, which marks answers for training; its content is kept."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset(["+", "*", "**", "%"])
    code_generator_class = _Generator

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        sizes = [len(value) if hasattr(value, "__len__") else 0 for value in (left, right)]
        if isinstance(left, int) and isinstance(right, int):
            if operator == "**":
                _require(left.bit_length() * abs(right), _BITS)
            elif operator == "*":
                _require(left.bit_length() + right.bit_length(), _BITS)
        elif operator == "*":
            count = left if isinstance(left, int) else right
            _require(sum(sizes) * max(count, 0) if isinstance(count, int) else 0)
        elif operator == "+":
            _require(sum(sizes))
        elif operator == "%" and isinstance(left, str):
            _require_format(left)
            _weigh(right)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, function: Any, *args: Any, **keywords: Any) -> Any:  # type: ignore[override]
        _call_is_small(function, (*args, *keywords.values()))
        return super().call(context, function, *args, **keywords)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return the method ``format`` of a text, which looks at widths and sizes first; None for other values."""
        wrapped = super().wrap_str_format(value)
        if wrapped is None:
            return None
        format = wrapped

        def checked(*args: Any, **keywords: Any) -> str:
            _require_format(value.__self__)
            _require_narrow(*args, *keywords.values())  # a width may be an argument
            _require(_weigh(*args, *keywords.values()) * (1 + value.__self__.count("{")))
            return format(*args, **keywords)

        return checked

    def joined(self, parts: tuple[Any, ...]) -> str:
        """Return the texts of ``a ~ b ~ c``."""
        _weigh(*parts)
        return "".join(map(str, parts))


def environment() -> _Sandbox:
    """Return the environment of chat templates, with what Hugging Face's transformers offer them."""
    made = _Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation], finalize=_shown, cache_size=0,
    )  # fmt: skip
    del made.globals["lipsum"]
    made.filters = {name: _small(name, function) for name, function in made.filters.items()}
    made.filters["tojson"] = _small("tojson", _to_json)
    made.globals["raise_exception"] = _raise
    made.globals["strftime_now"] = _now
    return made


def _shown(value: Any) -> Any:
    """Look at the size of a value before it becomes text."""
    if not isinstance(value, (str, int)):
        _weigh(value)
    return value


def _small(name: str, function: Any) -> Any:
    """Return a filter that looks at the sizes of its arguments first."""

    def checked(*args: Any, **keywords: Any) -> Any:
        kinds = (str, int, list, tuple, Mapping)
        own = [arg for arg in (*args, *keywords.values()) if isinstance(arg, kinds) and not isinstance(arg, Context)]
        _require_narrow(*own[1:])
        size = _weigh(*own)
        if name == "replace" and len(own) > 2:
            _replaced(str(own[0]), str(own[1]), str(own[2]))
        elif name == "join" and len(own) > 1 and isinstance(own[0], (list, tuple)):
            _require(size + len(own[0]) * len(str(own[1])))
        elif name in ("format", "indent", "tojson"):
            _require_format(own[0] if name == "format" and own else None)
            widths = [number for number in own[1:] if isinstance(number, int) and name != "format"]
            _require(size * (1 + max(widths, default=4)))
        return function(*args, **keywords)

    checked.__dict__.update(getattr(function, "__dict__", {}))  # whether Jinja passes the context or the environment
    return checked


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return a value as JSON, as transformers' filter does: without the escapes that Jinja adds for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: object) -> NoReturn:
    raise RaisedError(message)


def _now(format: str) -> str:
    """Return the local time in a format of ``strftime``."""
    _require_format(format)
    _require(len(format), 1000)
    return datetime.datetime.now().strftime(format)
