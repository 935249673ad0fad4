"""The language server: the messages of the Language Server Protocol, in terms of ``Document``.

pygls reads and writes the messages. ``Document`` keeps the texts, because pygls' copy of a text takes seconds to change
if it has millions of lines.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.uris import from_fs_path, to_fs_path

from irrun.opdef import all_ops
from irrun.server import navigation
from irrun.server.completion import completions
from irrun.server.document import Document, Range
from irrun.server.findings import Finding, Remedy

__all__ = ["Server", "make_server", "start"]

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.5
"""How long an editor must rest before all of a large document is checked again."""
_SWITCH_SECONDS: Final = 0.001
"""How long the check of a large document computes before a request may interrupt it."""
_MOST_FOLDS: Final = 5000
"""The most folds of a document, if the editor names no limit."""
_MOST_NAMES: Final = 200
"""The most layers that a search by name returns."""
_FIX_ALL: Final = f"{types.CodeActionKind.SourceFixAll.value}.irrun"


class _Protocol(LanguageServerProtocol):
    """pygls' protocol, without its copy of the texts."""

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        yield self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE], (params,), None


class Server(LanguageServer):
    """A language server for IR files."""

    def __init__(self, version: str) -> None:
        super().__init__("irrun", version, protocol_cls=_Protocol)
        self.documents: dict[str, Document] = {}
        self.checks: dict[str, asyncio.Task[None]] = {}
        """The checks of whole documents that wait or run."""

    @property
    def encoding(self) -> str:
        chosen = self.server_capabilities.position_encoding
        return types.PositionEncodingKind(chosen or types.PositionEncodingKind.Utf16).value

    # -- findings ---------------------------------------------------------------------------------

    def show(self, document: Document) -> None:
        """Send the findings of a document to the editor."""
        diagnostics = [_diagnostic(document, finding) for finding in document.findings]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(document.uri, diagnostics, version=document.version)
        )

    def changed(self, document: Document, *, pause: float = _PAUSE_SECONDS) -> None:
        """Show what is known of a document at once, and all of it as soon as it is checked."""
        document.answer()
        if document.is_small or not document.is_ir:
            self.show(document)
            return
        if document.snapshot is not None:
            self.show(document)
        before = self.checks.get(document.uri)
        self.checks[document.uri] = asyncio.ensure_future(self._settle(document, before, pause))

    async def _settle(self, document: Document, before: asyncio.Task[None] | None, pause: float) -> None:
        """Check all of a document after a pause without edits. A check that runs is not stopped but awaited."""
        await asyncio.sleep(pause)
        if before is not None:
            await before
        if self.checks.get(document.uri) is not asyncio.current_task():  # there was another edit
            return
        document.settle(await _in_thread(document.begin().check))
        if self.documents.get(document.uri) is document:
            self.show(document)

    async def settled(self, document: Document) -> Document:
        """Wait until a version of the document is known, and return the document."""
        if document.snapshot is None and (check := self.checks.get(document.uri)) is not None:
            await asyncio.shield(check)
        return document


async def _in_thread(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which runs in a thread that does not keep the process alive."""
    loop, done = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def run() -> None:
        try:
            result, error = work(), None
        except Exception as raised:
            result, error = None, raised
        if loop.is_closed():
            return
        loop.call_soon_threadsafe(lambda: done.set_exception(error) if error else done.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return await done


# ---------------------------------------------------------------------------------------------
# in the terms of the protocol


def _range(range: Range) -> types.Range:
    (line, character), (end_line, end_character) = range
    return types.Range(types.Position(line, character), types.Position(end_line, end_character))


def _position(position: types.Position) -> tuple[int, int]:
    return position.line, position.character


def _diagnostic(document: Document, finding: Finding) -> types.Diagnostic:
    found = finding.diagnostic
    severities = {"error": types.DiagnosticSeverity.Error, "warning": types.DiagnosticSeverity.Warning}
    lines = [found.message, *filter(None, found.notes), *([f"help: {found.help}"] if found.help else [])]
    return types.Diagnostic(
        _range(document.range(finding.start, finding.end)),
        "\n".join(lines),
        severity=severities[found.severity],
        code=found.code,
        source="irrun",
    )


def _edit(document: Document, remedies: Sequence[Remedy]) -> types.WorkspaceEdit:
    changes = dict.fromkeys(change for remedy in remedies for change in remedy.changes)
    edits = [types.TextEdit(_range(document.range(c.start, c.end)), c.text) for c in sorted(changes)]
    return types.WorkspaceEdit(changes={document.uri: edits})


def _actions(document: Document, params: types.CodeActionParams) -> Iterator[types.CodeAction]:
    """Yield the fixes of the findings in a range, then the action that makes all safe fixes of the document."""
    start, end = (document.text.offset(*_position(p)) for p in (params.range.start, params.range.end))
    only = params.context.only
    wants = [str(getattr(kind, "value", kind)) for kind in only] if only else ["quickfix", _FIX_ALL]
    for finding in document.findings:
        if any("quickfix".startswith(kind) for kind in wants) and start <= finding.end and finding.start <= end:
            for number, remedy in enumerate(finding.remedies):
                yield types.CodeAction(
                    remedy.title,
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[_diagnostic(document, finding)],
                    is_preferred=number == 0 and remedy.is_safe,
                    edit=_edit(document, [remedy]),
                )
    safe = list(_apart(f.remedies[0] for f in document.findings if f.remedies and f.remedies[0].is_safe))
    if safe and any(_FIX_ALL.startswith(kind) for kind in wants):
        title = f"Fix all that irrun can fix safely ({len(safe)})"
        yield types.CodeAction(title, kind=_FIX_ALL, edit=_edit(document, safe))


def _apart(remedies: Iterator[Remedy]) -> Iterator[Remedy]:
    """Yield the remedies whose changes do not touch those of an earlier one, or are the same."""
    end, last = -1, None
    for remedy in sorted(remedies, key=lambda remedy: (remedy.changes[0].start, remedy.changes[-1].end)):
        if remedy.changes == last or remedy.changes[0].start > end:
            end, last = max(change.end for change in remedy.changes), remedy.changes
            yield remedy


def _symbol(symbol: navigation.Symbol) -> types.DocumentSymbol:
    place = _range(symbol.range)
    kind = types.SymbolKind.Namespace if symbol.children else types.SymbolKind.Function
    children = [_symbol(child) for child in symbol.children]
    return types.DocumentSymbol(
        symbol.name, kind, place, types.Range(place.start, place.start), detail=symbol.detail, children=children
    )


# ---------------------------------------------------------------------------------------------
# messages


def start(version: str) -> None:
    """Serve an editor on standard input and output until it says ``exit``, and end the process.

    ``version`` is that of irrun.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    make_server(version).start_io()
    sys.stderr.flush()
    os._exit(0)  # at once: freeing the objects of a large model takes seconds


def make_server(version: str) -> Server:
    """Return a server with all its features. ``start_io`` of the result starts it."""
    server = Server(version)
    _register_texts(server)
    _register_requests(server)
    return server


def _register_texts(server: Server) -> None:
    @server.feature(types.INITIALIZED)
    def initialized(params: types.InitializedParams) -> None:
        threading.Thread(target=all_ops, daemon=True).start()  # the first completion need not wait for their import

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = to_fs_path(item.uri) if item.uri.startswith("file:") else None
        document = Document(item.uri, Path(path) if path else None, item.text, server.encoding)
        document.version = item.version
        server.documents[item.uri] = document
        server.changed(document, pause=0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        document = server.documents[params.text_document.uri]
        for change in params.content_changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                document.edit((_position(change.range.start), _position(change.range.end)), change.text)
            else:
                document.edit(None, change.text)
        document.version = params.text_document.version
        server.changed(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        if document := server.documents.get(params.text_document.uri):
            server.changed(document, pause=0)  # the .bin may be another one

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.documents.pop(uri, None)
        server.checks.pop(uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _register_requests(server: Server) -> None:
    async def asked(params: Any) -> tuple[Document, tuple[int, int]]:
        document = await server.settled(server.documents[params.text_document.uri])
        return document, _position(params.position)

    def locations(document: Document, ranges: Sequence[Range]) -> list[types.Location]:
        return [types.Location(document.uri, _range(range)) for range in ranges]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        text = navigation.hover(*await asked(params))
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text)) if text else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    async def definition(params: types.DefinitionParams) -> list[types.Location]:
        document, position = await asked(params)
        if (weights := navigation.weights_at(document, position)) is not None:
            uri = from_fs_path(os.path.abspath(weights)) or ""
            return [types.Location(uri, _range(((0, 0), (0, 0))))]
        return locations(document, navigation.definitions(document, position))

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    async def references(params: types.ReferenceParams) -> list[types.Location]:
        document, position = await asked(params)
        return locations(document, navigation.references(document, position))

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    async def prepare_rename(params: types.PrepareRenameParams) -> types.PrepareRenamePlaceholder | None:
        named = navigation.named(*await asked(params))
        return types.PrepareRenamePlaceholder(_range(named[1]), named[0].name) if named else None

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    async def rename(params: types.RenameParams) -> types.WorkspaceEdit:
        document, position = await asked(params)
        try:
            range, text = navigation.renamed(document, position, params.new_name)
        except ValueError as error:
            raise JsonRpcInvalidParams(str(error)) from None
        return types.WorkspaceEdit(changes={document.uri: [types.TextEdit(_range(range), text)]})

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    async def document_symbol(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = await server.settled(server.documents[params.text_document.uri])
        return [_symbol(symbol) for symbol in navigation.document_symbols(document)]

    @server.feature(types.WORKSPACE_SYMBOL)
    async def workspace_symbol(params: types.WorkspaceSymbolParams) -> list[types.SymbolInformation]:
        found: list[types.SymbolInformation] = []
        for document in list(server.documents.values()):
            for name, type, range in navigation.layers_named(await server.settled(document), params.query):
                place = types.Location(document.uri, _range(range))
                found.append(types.SymbolInformation(place, name, types.SymbolKind.Function, container_name=type))
                if len(found) == _MOST_NAMES:
                    return found
        return found

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=['"', "'", " "]))
    def completion(params: types.CompletionParams) -> list[types.CompletionItem]:
        document = server.documents[params.text_document.uri]
        items = completions(document.text, _position(params.position)) if document.is_ir else []
        kinds = types.CompletionItemKind.Property, types.CompletionItemKind.Value
        return [types.CompletionItem(i.text, kind=kinds[i.is_value], detail=i.detail or None) for i in items]

    kinds = [types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll]

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, types.CodeActionOptions(code_action_kinds=kinds))
    def code_action(params: types.CodeActionParams) -> list[types.CodeAction]:
        return list(_actions(server.documents[params.text_document.uri], params))

    @server.feature(types.TEXT_DOCUMENT_FOLDING_RANGE)
    async def folding_range(params: types.FoldingRangeParams) -> list[types.FoldingRange]:
        document = await server.settled(server.documents[params.text_document.uri])
        capabilities = server.client_capabilities.text_document
        folding = capabilities.folding_range if capabilities else None
        most = (folding.range_limit if folding else None) or _MOST_FOLDS
        return [types.FoldingRange(first, last) for first, last in navigation.folds(document, most)]
