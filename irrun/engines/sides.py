"""Sides of a comparison: what to run, and with which engine, written ``KIND[OPTIONS]:PATH``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from irrun.diagnostics import Diagnostic, EngineError
from irrun.model.lookup import nearest

__all__ = ["KINDS", "Side", "parse_side"]

_NUMBER: Final = re.compile(r"[1-9]\d{0,3}")
_OPTIONS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "device": (re.compile(r".+"), "the name of a device, such as CPU or GPU"),
    "precision": (re.compile(r"f32|f16|bf16"), "f32, f16 or bf16"),
    "threads": (_NUMBER, "a number from 1 to 9999"),
    "weights": (re.compile(r".+"), "the path of a .bin file"),
    "python": (re.compile(r".+"), "the path of a Python interpreter"),
    "source": (re.compile(r".+"), "the folder of a clone of the engine"),
}
"""Every option: the values that it takes, as a pattern and in words."""

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "irrun": ("threads", "weights", "python"),
    "exact": ("weights", "python"),
    "openvino": ("device", "precision", "threads", "weights", "python"),
    "evaluate": ("weights", "python"),
    "onnx": ("python",),
    "ort": ("device", "threads", "python"),
    "openvino2onnx": ("device", "threads", "python"),
    "pyopenvino": ("source", "python"),
    "dump": (),
    "npz": (),
}
"""The kinds of sides, each with its options: irrun with its default plan, irrun with the defining kernels, OpenVINO,
the reference kernels of OpenVINO's core, the reference evaluator of ONNX, onnxruntime, onnxruntime behind the converter
openvino2onnx, the Python project pyopenvino, a folder written by `irrun run --dump`, and an array file."""

_PREFIX: Final = re.compile(r"([A-Za-z][\w-]+)(\[)?")
"""The beginning of ``KIND:PATH`` or ``KIND[OPTIONS]:PATH``. A kind has two letters or more: ``C:`` is a drive."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side of a comparison: an engine of ``kind`` with ``options``, and the file or folder that it runs or reads.

    ``path`` is None for an engine without a model, to which ``Engine.load`` passes one.
    """

    kind: str
    path: Path | None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def weights(self) -> str | None:
        """The ``.bin`` file that the side names, or None for the one beside its ``.xml``."""
        return self.options.get("weights")

    def with_weights(self, path: str | None) -> Side:
        """Return the side with another ``.bin``, unless it names one or has no IR."""
        if path is None or "weights" not in KINDS[self.kind] or self.weights is not None:
            return self
        return replace(self, options={**self.options, "weights": path})

    def without_model(self) -> Side:
        """Return the engine of the side, which can run other models."""
        kept = {name: text for name, text in self.options.items() if name != "weights"}
        return replace(self, path=None, options=kept)

    def __str__(self) -> str:
        options = ",".join(f"{name}={_quoted(text)}" for name, text in self.options.items())
        head = f"{self.kind}[{options}]" if options else self.kind
        return head if self.path is None else f"{head}:{self.path}"


def parse_side(text: str, *, needs_path: bool = True) -> Side:
    """Return the side that ``text`` describes.

    A text without a kind is a path: a folder is a dump, a ``.npz`` an array file, and any other file a model that irrun
    runs. The same holds for a path that contains a colon, if the file exists or if the colon follows the letter of a
    drive. Without ``needs_path``, ``KIND[OPTIONS]`` alone is an engine without a model.

    Raises EngineError (IR701) if the text has an unknown kind or option, or is incomplete.
    """
    match = _PREFIX.match(text)
    rest = "" if match is None else text[match.end() :]
    is_prefixed = match is not None and (match[2] is not None or rest.startswith(":") or (not needs_path and not rest))
    if match is None or not is_prefixed or (match[1] not in KINDS and _exists(text)):
        return Side(_kind_of(text), Path(_required(text, text)))
    kind = match[1]
    if kind not in KINDS:
        if match[2] is not None and ":" not in text:
            return Side(_kind_of(text), Path(text))  # a file name with a bracket
        near = nearest(kind, KINDS)
        help = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(KINDS)}; a path needs none"
        raise _bad(text, f"there is no engine {kind!r}", help)
    options, rest = _options(text, kind, match.end()) if match[2] is not None else ({}, rest)
    if not rest and not needs_path:
        return Side(kind, None, options)
    if not rest.startswith(":"):
        raise _bad(text, "a colon is missing after the options", f"write {kind}[...]:PATH")
    return Side(kind, Path(_required(text, rest[1:])), options)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _kind_of(path: str) -> str:
    """Return the kind of a side that is written as a path alone. Raises EngineError (IR701) for an ONNX model."""
    if path.lower().endswith(".onnx"):
        help = f"write onnx:{path} for the reference evaluator of ONNX, or ort:{path} for onnxruntime"
        raise _bad(path, "irrun runs no ONNX models", help)
    if path.lower().endswith(".npz"):
        return "npz"
    return "dump" if _exists(path) and Path(path).is_dir() else "irrun"


def _required(text: str, path: str) -> str:
    if not path:
        raise _bad(text, "a path is missing", f"write {text or 'the path of a model'}{'model.xml' if text else ''}")
    return path


def _options(text: str, kind: str, start: int) -> tuple[dict[str, str], str]:
    """Return the options that begin at ``start``, behind the bracket, and the text behind the closing bracket.

    A value in single or double quotes may contain commas and brackets.
    """
    options: dict[str, str] = {}
    at = start
    item = re.compile(r"""\s*([\w-]*)\s*(=\s*("[^"]*"|'[^']*'|[^,\]"']*))?\s*([,\]]|$)?""")
    while True:
        match = item.match(text, at)
        assert match is not None  # every part is optional
        name, end = match[1], match[4]
        if end is None:
            raise _bad(
                text, f"cannot read the options from {text[at:]!r} on", "put a value with quotes in other quotes"
            )
        if name or match[2]:
            _require_option(text, kind, name, match[3], options)
            options[name] = _unquoted(match[3])
        elif end == "," or options:
            raise _bad(text, "an option is empty", "remove the extra comma")
        at = match.end()
        if end == "":
            raise _bad(text, "the bracket of the options is not closed", f"write {kind}[device=CPU]:PATH")
        if end == "]":
            return options, text[at:]


def _require_option(text: str, kind: str, name: str, value: str | None, earlier: Mapping[str, str]) -> None:
    """Raise EngineError (IR701) unless the kind has the option, the option takes the value, and it is new."""
    known = KINDS[kind]
    if name not in known:
        near = nearest(name, known)
        listed = f"its options are {', '.join(known)}" if known else f"write {kind}:PATH"
        raise _bad(text, f"{kind} has no option {name!r}", f"did you mean {near[0]}?" if near else listed)
    pattern, words = _OPTIONS[name]
    if value is None or not pattern.fullmatch(_unquoted(value)):
        problem = "has no value" if not value else f"cannot be {_unquoted(value)!r}"
        raise _bad(text, f"the option {name} {problem}", f"pass {words}")
    if name in earlier:
        raise _bad(text, f"the option {name} is passed twice", "remove one of the two")


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if value[:1] in ("'", '"') else value


def _quoted(value: str) -> str:
    return value if not re.search(r"""[,\]\s"']""", value) else f"'{value}'" if '"' in value else f'"{value}"'


def _bad(text: str, problem: str, help: str) -> EngineError:
    return EngineError(Diagnostic("IR701", "error", f"cannot use {text!r}: {problem}", help=help))
