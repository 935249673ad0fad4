"""Jinja for the templates of strangers, and the loop of the process that runs them.

``irrun.genai.rendering`` starts this file as a program. It needs nothing but Python and jinja2. Jinja's sandbox keeps a
template from Python and from files; the limits of the process bound its time and its memory. This module needs the
package jinja2, so it is imported when a template is first read.
"""

from __future__ import annotations

import base64
import datetime
import json
import marshal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn

from jinja2 import Template, TemplateSyntaxError, nodes, pass_context
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["LARGEST", "RaisedError", "TemplateSyntaxError", "compiled", "failure", "rendered"]

LARGEST: Final = 4 << 20
"""The most characters of the text of a template."""


class RaisedError(Exception):
    """The template has called ``raise_exception``."""


class TooLongError(Exception):
    """The text is longer than ``LARGEST``."""


class _Generation(Extension):
    """The tag ``{% generation %}``, which marks answers for training; its content is kept."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> nodes.Node | list[nodes.Node]:
        line = next(parser.stream).lineno
        return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)


def compiled(text: str) -> Template:
    """Return a template in the environment of chat templates, with what Hugging Face's transformers offer them.

    Nothing of the template is computed here: Jinja would compute constant expressions, without any limit.
    """
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, _Generation], optimized=False,
        finalize=_unchanged, cache_size=0,
    )  # fmt: skip
    tree = made.parse(text)
    for node in tree.find_all(nodes.EvalContextModifier):  # Jinja would compute its value now
        if not all(isinstance(option.value, nodes.Const) for option in node.options):
            raise TemplateSyntaxError("autoescape takes true or false", node.lineno)
    del made.globals["lipsum"]
    made.filters["tojson"] = _to_json
    made.globals["raise_exception"] = _raise
    made.globals["strftime_now"] = _now
    return made.from_string(tree)


@pass_context
def _unchanged(_: object, value: Any) -> Any:
    """Return ``value``. A function that takes the context keeps Jinja from computing constants early."""
    return value


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
    return datetime.datetime.now().strftime(format)


def rendered(template: Template, names: Mapping[str, Any]) -> str:
    """Return the text of a template. Raises whatever the template raises, and TooLongError."""
    pieces: list[str] = []
    size = 0
    for piece in template.generate(names):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise TooLongError
    return "".join(pieces)


def failure(error: Exception) -> tuple[str, int | None]:
    """Return the message for an exception of a running template, and the line of the template at which it happened."""
    line = None
    trace = error.__traceback__
    while trace is not None:  # Jinja names the lines of the template in the traceback
        if trace.tb_frame.f_code.co_filename in ("<template>", "<unknown>"):
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, RaisedError):
        return f"the template refuses the messages: {error}", line
    if isinstance(error, TooLongError):
        return f"the template was stopped: its text has over {LARGEST:,} characters", line
    if isinstance(error, RecursionError):
        return "the template was stopped: it calls itself too deeply", line
    if isinstance(error, (MemoryError, OverflowError)):
        return "the template was stopped: it takes too much memory", line
    return f"the template fails: {str(error)[:1000] or type(error).__name__}", line


# ---------------------------------------------------------------------------------------------
# the process


def _limit(seconds: float, memory: int) -> None:
    """Bound the memory of this process, and its time from now on, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    end = int(used.ru_utime + used.ru_stime + seconds) + 2
    for kind, soft in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, end)):
        hard = resource.getrlimit(kind)[1]
        with suppress(OSError, ValueError):  # macOS has no limit of addresses
            resource.setrlimit(kind, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _serve() -> None:
    """Answer requests for texts: lines of JSON, whose values are those of Python's ``marshal``."""
    known = ("", None)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["cmd"] == "stop":
            return
        _limit(request["seconds"], request["memory"])
        try:
            if known[0] != request["template"] or known[1] is None:
                known = request["template"], compiled(request["template"])
            answer: Any = {"text": rendered(known[1], marshal.loads(base64.b64decode(request["names"])))}
        except Exception as error:
            message, number = failure(error)
            answer = {"message": message, "line": number}
        sys.stdout.write(json.dumps({"ok": answer}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve()
