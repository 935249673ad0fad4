"""Chat templates: the text that a model expects for a list of messages, by a template in Jinja."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from irrun.base.extras import install
from irrun.base.source import Source, Span
from irrun.diagnostics import FeedError, ReadError, UnsupportedError, diagnostic
from irrun.genai.folder import Folder, Json
from irrun.genai.rendering import Failure, Renderer
from irrun.ir.parse import read_bytes

__all__ = ["ChatTemplate", "Message"]

Message = Mapping[str, Any]
"""A message of a chat: ``role`` (system, user, assistant …) and ``content``."""

_LONGEST_TEMPLATE: Final = 1 << 20
"""The most characters of a template; the longest in use have some ten thousand."""


class ChatTemplate:
    """The chat template of a folder.

    ``text`` is the template, ``source`` the file that holds it, ``span`` its place there, and ``names`` are variables
    of the template. In a JSON file, all lines of the template are one line of the file, which errors name. Raises
    ReadError (IR806) for a template that cannot be compiled, UnsupportedError (IR201) if jinja2 is not installed.
    """

    def __init__(self, text: str, source: Source, span: Span | None, names: Mapping[str, str]) -> None:
        self._text, self._source, self._span, self._names = text, source, span, names
        if len(text) > _LONGEST_TEMPLATE:
            raise ReadError(self._diagnostic(f"the template has {len(text):,} characters, more than any", None))
        sandbox = _sandbox(source)
        try:
            sandbox.compiled(text)
        except sandbox.TemplateSyntaxError as error:
            raise ReadError(self._diagnostic(error.message or "the template is no Jinja", error.lineno)) from None
        except (RecursionError, MemoryError, OverflowError, SyntaxError, ValueError) as error:
            reason = "it is nested too deeply" if isinstance(error, (RecursionError, MemoryError)) else str(error)
            raise ReadError(self._diagnostic(f"the template cannot be compiled: {reason}", None)) from None
        self._renderer = Renderer(text, sandbox)

    @staticmethod
    def of(folder: Folder, stored: str | None) -> ChatTemplate | None:
        """Return the template of a folder: chat_template.jinja, or the entry of tokenizer_config.json, or ``stored``.

        ``stored`` is that of the tokenizer's IR file. Returns None if there is none. Raises ReadError (IR802, IR806).
        """
        names = _special_tokens(folder)
        path = folder.path / "chat_template.jinja"
        if path.exists():
            data = read_bytes(path)
            try:
                return ChatTemplate(data.decode("utf-8-sig"), Source(str(path), data), Span(1, 1, 2), names)
            except UnicodeDecodeError as error:
                message = f"the template is not UTF-8: {error.reason} at byte {error.start}"
                raise ReadError(diagnostic("IR806", message, source=Source(str(path), b""))) from None
        text = _configured(folder.tokenizer_config)
        if text is not None:
            source = folder.tokenizer_config.source
            assert source is not None
            return ChatTemplate(text, source, folder.tokenizer_config.span("chat_template"), names)
        return None if not stored else ChatTemplate(stored, Source(str(folder.tokenizer), b""), None, names)

    def __call__(self, messages: Sequence[Message], *, add_generation_prompt: bool = True, **variables: Any) -> str:
        """Return the text of messages; with ``add_generation_prompt``, also the beginning of the answer.

        ``variables`` are further variables of the template. Raises FeedError (IR806) if the template refuses the
        messages, fails, or takes too much time or memory. The template runs in a process of its own, which waits for
        the next messages as long as this object lives.
        """
        own = {
            "messages": list(messages),
            "add_generation_prompt": add_generation_prompt,
            "tools": None,
            "documents": None,
        }
        names = {**self._names, **own, **variables}
        try:
            return self._renderer(names)
        except Failure as failure:
            raise FeedError(self._diagnostic(str(failure), failure.line)) from None

    def _diagnostic(self, message: str, line: int | None) -> Any:
        """Return a diagnostic (IR806) at a line of the template."""
        help = "correct the template, or pass other messages"
        is_file = self._source.path.endswith(".jinja")
        if is_file and line is not None:
            width = len(self._source.line(line).rstrip())
            span = Span(line, 1, max(width, 1) + 1)
            return diagnostic("IR806", message, source=self._source, span=span, help=help)
        notes = () if line is None else (f"line {line} of the template: {_line_of(self._text, line)}",)
        return diagnostic("IR806", message, source=self._source, span=self._span, notes=notes, help=help)


def _line_of(text: str, line: int) -> str:
    lines = text.split("\n")
    return lines[line - 1].strip()[:100] if 0 < line <= len(lines) else ""


# ---------------------------------------------------------------------------------------------
# where the template comes from


def _configured(config: Json) -> str | None:
    """Return the template of tokenizer_config.json: a text, or that named ``default`` in a list. Raises ReadError."""
    value = config.data.get("chat_template")
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        value = named.get("default", next(iter(named.values()), None))
    if value is not None and not isinstance(value, str):
        raise config.refuse("chat_template", "chat_template is no text", "write the template as a text")
    return value


def _special_tokens(folder: Folder) -> dict[str, str]:
    """Return the texts of bos_token, eos_token and so on, which templates use by name."""
    tokens: dict[str, str] = {}
    for file in (folder.special_tokens, folder.tokenizer_config):
        for name, value in file.data.items():
            text = value.get("content") if isinstance(value, dict) else value
            if name.endswith("_token") and isinstance(text, str):
                tokens[name] = text
    return tokens


def _sandbox(source: Source) -> Any:
    """Import the sandbox. Raises UnsupportedError (IR201) if jinja2 is not installed."""
    try:
        return importlib.import_module("irrun.genai.sandbox")
    except ImportError:
        message = "the chat template needs the Python package jinja2, which is not installed"
        help = f"{install('genai')}; or generate without --chat"
        raise UnsupportedError(diagnostic("IR201", message, source=source, help=help)) from None
