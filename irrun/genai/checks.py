"""Check whether the files of a language model belong together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from irrun.api import load
from irrun.diagnostics import Diagnostic, IrrunError, Report, UnsupportedError, diagnostic
from irrun.genai.causal import columns, embedding, not_causal
from irrun.genai.decoder import is_stateful, logits_of, unfed
from irrun.genai.folder import Folder, Json
from irrun.genai.sampling import settings_of
from irrun.genai.templates import ChatTemplate
from irrun.genai.vocabulary import Detokenizer, Tokenizer, Vocabulary, rt_info
from irrun.model import Layer, Model

__all__ = ["check"]

_SPECIAL: Final = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
"""The entries of config.json and generation_config.json that hold token ids."""
_OTHERS: Final = 0.01
"""The part of the tokens that must differ for a detokenizer to belong to another tokenizer. Those of one export differ
in none, those of related models in a quarter; a converter may change a few special tokens."""


def check(path: str | Path) -> Report:
    """Report where the files of a language model do not belong together.

    The IR files themselves are not checked: ``irrun.check`` does that. The report is empty for a folder that
    ``Pipeline`` can use. For a model that generates no text, such as BERT, only the tokens are compared, and files may
    be missing; a detokenizer, which has no other use, gives a warning. Never raises an IrrunError: a file that cannot
    be read is a finding.
    """
    try:
        return Report(tuple(_findings(Folder.open(path))))
    except IrrunError as error:
        return Report(error.diagnostics)


def _findings(folder: Folder) -> Iterator[Diagnostic]:
    """Yield the findings of a folder. Raises ReadError for a file without which nothing can be compared."""
    model = load(folder.model).model if folder.model.exists() else None
    generates = model is None or is_stateful(model) or bool(folder.generation.data)
    if generates:
        folder.require_models()
    tokenizer, detokenizer = (
        load(file).model if file.exists() else None for file in (folder.tokenizer, folder.detokenizer)
    )
    own = None if tokenizer is None else Tokenizer.of(tokenizer).vocabulary
    other = None if detokenizer is None else Detokenizer.of(detokenizer).vocabulary
    fault = None if model is None else not_causal(model, folder, None if own is None else own.size)
    if model is not None and generates:
        yield from unfed(model)
        yield from [] if fault is None else [fault]
    elif model is not None and detokenizer is not None and (faults := [*unfed(model), *([fault] if fault else [])]):
        yield _without_text(faults[0])
    if own is not None and tokenizer is not None and model is not None:
        yield from _against_model(own, tokenizer, model, generates and fault is None)
    if own is not None and other is not None and detokenizer is not None:
        yield from _against_tokenizer(other, detokenizer, own)
    tokens = [vocabulary.size for vocabulary in (own, other) if vocabulary is not None]
    width = None if model is None or not generates else columns(model)
    for file in (folder.config, folder.generation):
        try:
            yield from _special_tokens(file, max(tokens) if tokens else width, width)
        except IrrunError as error:
            yield from error.diagnostics
    if generates:
        yield from _settings(folder, None if tokenizer is None else rt_info(tokenizer).get("chat_template"))


def _without_text(fault: Diagnostic) -> Diagnostic:
    """Return the warning (IR807) for a folder with a detokenizer whose model generates no text, from what is wrong."""
    message = f"the folder has a detokenizer, but its model generates no text: {fault.message}"
    help = f"{fault.help}; a model of another task needs no openvino_detokenizer.xml"
    return replace(diagnostic("IR807", message, help=help), file=fault.file, span=fault.span, source=fault.source,
                   layer=fault.layer)  # fmt: skip


# ---------------------------------------------------------------------------------------------
# vocabularies


def _against_model(own: Vocabulary, tokenizer: Model, model: Model, generates: bool) -> Iterator[Diagnostic]:
    """Yield a diagnostic (IR803) where the model has fewer tokens than the tokenizer: in its embedding or its logits.

    A model often has more, because the number is rounded up.
    """
    help = "put the tokenizer and the model of one export together"
    size, layer = embedding(model) or (None, None)
    sizes = [("the embedding has {} rows", size, layer)]
    if generates:
        sizes.append(("the logits have {} columns", columns(model), logits_of(model)))
    for what, size, layer in sizes:
        if size is not None and layer is not None and size < own.size:
            message = f"{what.format(f'{size:,}')}, but the tokenizer has {own.size:,} tokens"
            note = f'{own.layer.type} "{own.layer.name}", {tokenizer.source.path}, line {_line(tokenizer, own.layer)}'
            yield diagnostic(
                "IR803", message, source=model.source, node=layer.node, layer=layer.name, notes=(note,), help=help
            )


def _against_tokenizer(own: Vocabulary, detokenizer: Model, other: Vocabulary) -> Iterator[Diagnostic]:
    """Yield a diagnostic (IR803) if the detokenizer is not that of the tokenizer."""
    message = ""
    shared = own.tokens.keys() & other.tokens.keys()
    different = [id for id in sorted(shared) if _text(own.tokens[id]) != _text(other.tokens[id])]
    if own.size < other.size:
        message = f"the detokenizer has {own.size:,} tokens, the tokenizer {other.size:,}"
    elif len(different) > _OTHERS * len(shared):
        first = different[0]
        pair = " and ".join(repr(tokens[first].decode("utf-8", "replace")) for tokens in (own.tokens, other.tokens))
        message = (
            f"{len(different):,} of {len(shared):,} tokens differ from those of the tokenizer, such as {first}: {pair}"
        )
    if message:
        help = "put the tokenizer and the detokenizer of one export together"
        layer = own.layer
        yield diagnostic("IR803", message, source=detokenizer.source, node=layer.node, layer=layer.name, help=help)


def _text(token: bytes) -> bytes:
    """Return a token without what converters change: the marks of spaces, and of the inside of words."""
    return token.replace(b"\xe2\x96\x81", b"").removeprefix(b"##").replace(b" ", b"").replace(b"</w>", b"")


def _line(model: Model, layer: Layer) -> int:
    return model.source.line_of(layer.node)


# ---------------------------------------------------------------------------------------------
# configuration


def _special_tokens(file: Json, known: int | None, logits: int | None) -> Iterator[Diagnostic]:
    """Yield a diagnostic (IR804) for each special token of a file that the tokenizer does not have.

    ``known`` is the number of tokens of the tokenizer, ``logits`` that of the model. An end that the model cannot even
    choose is worse; the message says so. Raises ReadError (IR802) for an entry that holds no ids.
    """
    for key in _SPECIAL:
        for id in file.ids(key):
            if known is not None and not 0 <= id < known:
                message = f"{key} is {id}, but the tokenizer has {known:,} tokens"
                notes = (
                    (f"the logits have {logits:,} columns, so the model never chooses it",)
                    if logits and id >= logits
                    else ()
                )
                help = "write the id that the tokenizer gives the token, or export the model again"
                yield diagnostic("IR804", message, source=file.source, span=file.span(key), notes=notes, help=help)


def _settings(folder: Folder, stored: str | None) -> Iterator[Diagnostic]:
    """Yield what is wrong with the settings of a generation (IR802) and with the chat template (IR806)."""
    try:
        settings_of(folder, ())
    except IrrunError as error:
        yield from error.diagnostics
    try:
        ChatTemplate.of(folder, stored)
    except UnsupportedError:  # jinja2 is not installed, which a check does not need
        pass
    except IrrunError as error:
        yield from error.diagnostics
