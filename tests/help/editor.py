"""A client of `irrun server`, as an editor is one, for tests: pygls' own, with a server in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.client import LanguageClient

__all__ = ["Editor", "edited"]

T = TypeVar("T")

_PATIENCE_SECONDS = 300


class Editor:
    """One document that an editor shows. Positions are lines from 0 and characters."""

    def __init__(self, client: LanguageClient, path: Path, text: str) -> None:
        self.client, self.path, self.text = client, path, text
        self.uri = path.as_uri()
        self.version = 1
        self.published: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

    @property
    def document(self) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri)

    @property
    def memory(self) -> int:
        """The most memory that the server has taken, in bytes (on Linux)."""
        status = Path(f"/proc/{self.client._server.pid}/status").read_text()  # pyright: ignore[reportOptionalMemberAccess]
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    def find(self, text: str, start: int = 0) -> types.Position:
        """Return the position at which ``text`` begins, at or after the line ``start``."""
        for number, line in enumerate(self.text.split("\n")):
            if number >= start and text in line:
                return types.Position(number, line.index(text))
        raise AssertionError(f"{text!r} is not in the document")

    async def open(self) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(self.uri, "xml", self.version, self.text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.findings()

    async def findings(self) -> list[types.Diagnostic]:
        """Return the findings that the server sends next."""
        return list((await asyncio.wait_for(self.published.get(), _PATIENCE_SECONDS)).diagnostics)

    async def replace(self, position: types.Position, length: int, new: str) -> list[types.Diagnostic]:
        """Replace characters of a line, and return the first findings after it."""
        lines = self.text.split("\n")
        line = lines[position.line]
        lines[position.line] = line[: position.character] + new + line[position.character + length :]
        self.text = "\n".join(lines)
        self.version += 1
        end = types.Position(position.line, position.character + length)
        change = types.TextDocumentContentChangePartial(types.Range(position, end), new)
        name = types.VersionedTextDocumentIdentifier(self.version, self.uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(name, [change]))
        return await self.findings()

    async def ask(self, what: str, position: types.Position, **more: Any) -> Any:
        """Return the answer to a request about a position, such as ``hover`` or ``definition``."""
        params: Mapping[str, type] = {
            "hover": types.HoverParams, "definition": types.DefinitionParams, "references": types.ReferenceParams,
            "prepare_rename": types.PrepareRenameParams, "rename": types.RenameParams, "completion": types.CompletionParams,
        }  # fmt: skip
        if what == "references":
            more["context"] = types.ReferenceContext(False)
        asked = params[what](text_document=self.document, position=position, **more)
        return await getattr(self.client, f"text_document_{what}_async")(asked)

    async def actions(self, line: int) -> list[types.CodeAction]:
        range = types.Range(types.Position(line, 0), types.Position(line, 1000))
        params = types.CodeActionParams(self.document, range, types.CodeActionContext([]))
        return list(await self.client.text_document_code_action_async(params) or [])  # pyright: ignore[reportReturnType]

    def lines(self, places: Any) -> list[int]:
        """Return the lines of locations."""
        return [place.range.start.line for place in places]


def edited(path: Path, text: str, script: Callable[[Editor], Awaitable[T]]) -> T:
    """Return the result of ``script``, which gets an editor that has not opened its document yet."""

    async def run() -> T:
        client = LanguageClient("test", "1")
        editor = Editor(client, path, text)

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            editor.published.put_nowait(params)

        await client.start_io(sys.executable, "-m", "irrun", "server")
        await client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=None))
        client.initialized(types.InitializedParams())
        try:
            return await script(editor)
        finally:
            await client.shutdown_async(None)
            client.exit(None)
            await client.stop()

    return asyncio.run(run())
