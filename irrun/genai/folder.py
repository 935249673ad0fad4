"""The folder of a language model, as optimum-intel writes it: which files it holds, and their JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from irrun.base.source import Source, Span
from irrun.diagnostics import ReadError, diagnostic
from irrun.ir.parse import read_bytes, require_file, unreadable

__all__ = ["DETOKENIZER", "MODEL", "TOKENIZER", "Folder", "Json", "bad_folder", "is_folder"]

MODEL: Final = "openvino_model.xml"
TOKENIZER: Final = "openvino_tokenizer.xml"
DETOKENIZER: Final = "openvino_detokenizer.xml"

_LARGEST: Final = 64 << 20
"""The most bytes of a JSON file. The largest that is in use, a tokenizer_config.json, has some megabytes."""

_NOT_EXPORTED: Final = "a model that is not exported yet; run `optimum-cli export openvino -m FOLDER OUTPUT`"
_KINDS: Final = {
    "openvino_language_model.xml": "a model that also reads pictures; irrun generates from text alone",
    "openvino_decoder_model.xml": "an encoder and a decoder, such as Whisper; irrun generates with decoders alone",
    "model_index.json": "a pipeline that makes pictures; irrun generates text alone",
    "model.safetensors": _NOT_EXPORTED,
    "model.safetensors.index.json": _NOT_EXPORTED,
    "pytorch_model.bin": _NOT_EXPORTED,
}
"""What a folder without openvino_model.xml holds, by a file of it."""


@dataclass(frozen=True)
class Json:
    """A JSON file whose value is an object. ``data`` is empty if the file does not exist."""

    path: Path
    source: Source | None = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)

    @staticmethod
    def read(path: Path) -> Json:
        """Read a file that may be missing. Raises ReadError: IR000 if it cannot be read, IR802 if it is not JSON."""
        if not path.exists():
            return Json(path, None, {})
        raw = read_bytes(path)
        source = Source(str(path), raw if len(raw) <= _LARGEST else b"")
        help = "correct the file, or export the model again"
        if len(raw) > _LARGEST:
            raise ReadError(
                diagnostic("IR802", f"the file has {len(raw):,} bytes, more than any", source=source, help=help)
            )
        try:
            data = json.loads(raw.decode("utf-8-sig"))
        except json.JSONDecodeError as error:
            span = Span(error.lineno, error.colno, error.colno + 1)
            message = f"the file is not JSON: {error.msg.lower()}"
            raise ReadError(diagnostic("IR802", message, source=source, span=span, help=help)) from None
        except (ValueError, RecursionError) as error:  # not UTF-8, a number of thousands of digits, too many brackets
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ReadError(diagnostic("IR802", f"the file is not JSON: {reason}", source=source, help=help)) from None
        if not isinstance(data, dict):
            raise ReadError(
                diagnostic("IR802", f"the file holds {_kind(data)}, not an object", source=source, help=help)
            )
        return Json(path, source, data)

    def span(self, key: str) -> Span | None:
        """Return the position of the first ``"key":`` of the file, or None if it is written otherwise."""
        pattern = re.compile(rf'"{re.escape(key)}"(?=\s*:)')
        for number, line in enumerate(self._lines, 1):
            if match := pattern.search(line):
                return Span(number, match.start() + 1, match.end() + 1)
        return None

    @cached_property
    def _lines(self) -> Sequence[str]:
        return () if self.source is None else self.source.data.decode("utf-8", "replace").split("\n")

    def refuse(self, key: str, message: str, help: str) -> ReadError:
        """Return the error (IR802) for a value that is not as it must be."""
        return ReadError(diagnostic("IR802", message, source=self.source, span=self.span(key), help=help))

    def ids(self, key: str) -> tuple[int, ...]:
        """Return the token ids of an entry: one, several, or none. Raises ReadError (IR802) for another value."""
        value = self.data.get(key)
        items = [] if value is None else value if isinstance(value, list) else [value]
        for item in items:
            if not isinstance(item, int) or isinstance(item, bool):
                raise self.refuse(
                    key, f"{key} is {_kind(value)}, not token ids", "write a number, or a list of numbers"
                )
        return tuple(item for item in items if item != -1)  # -1 is openvino_genai's word for none

    def number(self, key: str, *, whole: bool = False) -> float | None:
        """Return a number, or None if the entry is missing or null. Raises ReadError (IR802) for another value."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            what = "a whole number" if whole else "a number"
            raise self.refuse(key, f"{key} is {_kind(value)}, not {what}", f"write {what}")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean; a missing entry is false. Raises ReadError (IR802) for another value."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, f"{key} is {_kind(value)}, not true or false", "write true or false")
        return bool(value)


def _kind(value: object) -> str:
    """Return the words for a JSON value in a message."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {dict: "an object", list: "a list", str: "a text"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), f"{value}"[:40])


@dataclass(frozen=True)
class Folder:
    """The files of a language model. The JSON files may be missing; their ``data`` is then empty."""

    path: Path
    config: Json
    generation: Json
    tokenizer_config: Json
    special_tokens: Json

    @staticmethod
    def open(path: str | Path) -> Folder:
        """Find the files of a folder, which may be incomplete.

        Raises ReadError: IR801 if there is no such folder, IR000 and IR802 for JSON that cannot be read.
        """
        folder = Path(path)
        _require_folder(folder)
        names = ("config.json", "generation_config.json", "tokenizer_config.json", "special_tokens_map.json")
        return Folder(folder, *(Json.read(folder / name) for name in names))

    def require_models(self) -> None:
        """Raise ReadError (IR801) if the folder lacks one of the three IR files; IR000 if one is no file."""
        for file in (self.model, self.tokenizer, self.detokenizer):
            if not file.exists():
                raise bad_folder(self.path, *_missing(self.path, file.name))
            try:
                require_file(file)
            except (OSError, ValueError) as error:
                raise unreadable(file, error) from None

    @property
    def model(self) -> Path:
        return self.path / MODEL

    @property
    def tokenizer(self) -> Path:
        return self.path / TOKENIZER

    @property
    def detokenizer(self) -> Path:
        return self.path / DETOKENIZER


def is_folder(path: Path) -> bool:
    """Return whether ``path`` looks like the folder of a language model: its model, and a file of its tokenizer."""
    return (path / MODEL).is_file() and ((path / TOKENIZER).is_file() or (path / DETOKENIZER).is_file())


def bad_folder(path: Path, message: str, help: str) -> ReadError:
    """Return the error (IR801) for a folder that is no language model."""
    return ReadError(diagnostic("IR801", message, file=str(path), help=help))


def _require_folder(path: Path) -> None:
    try:
        is_folder, exists = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_folder = exists = False
    if is_folder:
        return
    if not exists:
        raise bad_folder(path, "there is no such folder", "check the path")
    raise bad_folder(path, "this is a file, not the folder of a language model", f"pass the folder that holds {MODEL}")


def _missing(path: Path, name: str) -> tuple[str, str]:
    """Return the message and the help for a folder in which the file ``name`` is missing."""
    if name != MODEL:
        help = f"run `convert_tokenizer {path} --with-detokenizer -o {path}` (pip install openvino-tokenizers)"
        return f"the folder has no {name}", help
    for file, what in _KINDS.items():
        if (path / file).exists():
            kind, _, help = what.partition("; ")
            return f"the folder has no {MODEL}, but {file}: it is {kind}", help
    inside = sorted(entry.parent.name for entry in path.glob(f"*/{MODEL}"))[:3]
    if inside:
        return f"the folder has no {MODEL}", f"pass a folder in it: {', '.join(inside)}"
    return f"the folder has no {MODEL}", "pass the folder that optimum-intel has written"
