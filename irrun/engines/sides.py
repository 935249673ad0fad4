"""Sides of a comparison: what to run, and with which engine, written ``KIND[OPTIONS]:PATH``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from irrun.diagnostics import EngineError, diagnostic
from irrun.engines.kinds import ARRAYS, DUMP, IR, KINDS, ONNX, OPTIONS, PROPERTY, Kind, Option
from irrun.model.lookup import nearest

__all__ = ["Side", "names_engine", "parse_side", "parse_sides"]

_PREFIX: Final = re.compile(r"([A-Za-z][\w-]+)(\[)?")
"""The beginning of ``KIND:PATH`` or ``KIND[OPTIONS]:PATH``. A kind has two letters or more: ``C:`` is a drive."""
_ITEM: Final = re.compile(
    r"""
    \s* (?P<name> [\w-]* ) \s*
    ( = \s* (?P<value> "[^"]*" | '[^']*' | [^,\]"']* ) )? \s*
    (?P<end> [,\]] | $ )
    """,
    re.VERBOSE,
)
"""An option between brackets, up to the comma or bracket behind it. A value in quotes may contain both."""

_LANGUAGE_MODEL: Final = "openvino_model.xml"
"""The model in a folder that optimum-intel has written."""
_INDEX: Final = "index.json"
"""The list of values in a folder that ``irrun run --dump`` has written."""
_VALUE: Final = Option(re.compile(r".+"), "the value of the property, such as KV_CACHE_PRECISION=u8")
"""What a property may be."""


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
        if path is None or "weights" not in KINDS[self.kind].options or self.weights is not None:
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
    runs. A folder that holds ``openvino_model.xml`` stands for this file. The same holds for a path that contains a
    colon, if the file exists or if the colon follows the letter of a drive. Without ``needs_path``, ``KIND[OPTIONS]``
    alone is an engine without a model.

    Raises EngineError (IR701) if the text has an unknown kind or option, or is incomplete.
    """
    match = _PREFIX.match(text)
    rest = "" if match is None else text[match.end() :]
    is_prefixed = match is not None and (match[2] is not None or rest.startswith(":") or (not needs_path and not rest))
    if match is None or not is_prefixed or (match[1] not in KINDS and _exists(text)):
        return _side(_kind_of(text), _required(text, text), {})
    name = match[1]
    if name not in KINDS:
        if match[2] is not None and ":" not in text:
            return Side(_kind_of(text), Path(text))  # a file name with a bracket
        near = nearest(name, KINDS)
        help = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(KINDS)}; a path needs none"
        raise _bad(text, f"there is no engine {name!r}", help)
    options, rest = _options(text, KINDS[name], match.end()) if match[2] is not None else ({}, rest)
    if not rest and not needs_path:
        return Side(name, None, options)
    if not rest.startswith(":"):
        raise _bad(text, "a colon is missing after the options", f"write {name}[...]:PATH")
    return _side(name, _required(text, rest[1:]), options)


def _side(kind: str, path: str, options: Mapping[str, str]) -> Side:
    """Return a side. The path of a folder with a language model stands for the model.

    Raises EngineError (IR701) for a folder that holds nothing which a side can be.
    """
    is_recording = KINDS[kind].is_recording
    is_model = not is_recording and _exists(f"{path}/{_LANGUAGE_MODEL}")
    if _is_folder(path) and not is_model and not (is_recording and _exists(f"{path}/{_INDEX}")):
        contents = f"a language model ({_LANGUAGE_MODEL}) nor the values of `irrun run --dump` ({_INDEX})"
        raise _bad(path, f"the folder holds neither {contents}", _help_with_folder(Path(path)))
    return Side(kind, Path(path, _LANGUAGE_MODEL) if is_model else Path(path), options)


def parse_sides(first: str | Side, second: str | Side) -> tuple[Side, Side]:
    """Return two sides, each from its text. An engine without a path, such as ``openvino``, runs the other's model.

    Raises EngineError (IR701) if a text describes no side, or if neither side names a model.
    """
    texts = (first, second)
    sides = [parse_side(t, needs_path=not names_engine(t)) if isinstance(t, str) else t for t in texts]
    for at, side in enumerate(sides):
        other = sides[1 - at]
        if side.path is None and (other.path is None or KINDS[other.kind].is_recording):
            raise _bad(str(side), "the model that the engine runs is missing", f"write {side}:MODEL.xml")
        if side.path is None:
            sides[at] = replace(side, path=other.path).with_weights(other.weights)
    return sides[0], sides[1]


def names_engine(text: str) -> bool:
    """Return whether a text begins with the name of an engine, and is not the path of a file."""
    match = _PREFIX.match(text)
    end = "" if match is None or match[2] else text[match.end() :]
    return match is not None and match[1] in KINDS and end[:1] in ("", ":") and not _exists(text)


def _exists(text: str) -> bool:
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _help_with_folder(path: Path) -> str:
    """Return what to do with a folder that is no side: pass a model, one in the folder if it has any."""
    models = sorted(map(str, path.glob("*.xml")))
    return f"pass a model: {', '.join(models[:3] or ['the path of its .xml file'])}"


def _is_folder(text: str) -> bool:
    return _exists(text) and Path(text).is_dir()


def _kind_of(path: str) -> str:
    """Return the kind of a side that is written as a path alone. Raises EngineError (IR701) for an ONNX model."""
    if path.lower().endswith(".onnx"):
        engines = [f"{kind.name}:{path} for {kind.summary}" for kind in KINDS.values() if kind.reads == (ONNX,)]
        raise _bad(path, "irrun runs no ONNX models", f"write {', or '.join(engines)}")
    is_dump = _is_folder(path) and not _exists(f"{path}/{_LANGUAGE_MODEL}")
    content = ARRAYS if path.lower().endswith(".npz") else DUMP if is_dump else IR
    return next(kind.name for kind in KINDS.values() if kind.reads == (content,))


def _required(text: str, path: str) -> str:
    if not path:
        raise _bad(text, "a path is missing", f"write {text or 'the path of a model'}{'model.xml' if text else ''}")
    return path


def _options(text: str, kind: Kind, start: int) -> tuple[dict[str, str], str]:
    """Return the options that begin at ``start``, behind the bracket, and the text behind the closing bracket."""
    items, rest = _items(text, kind, start)
    options: dict[str, str] = {}
    for name, value in items:
        if not name and value is None:
            raise _bad(text, "an option is empty", "remove the extra comma")
        options[name] = _checked(text, kind, name, value, options)
    return options, rest


def _items(text: str, kind: Kind, start: int) -> tuple[list[tuple[str, str | None]], str]:
    """Return name and value of each option, None without ``=``, and the text behind the closing bracket."""
    items: list[tuple[str, str | None]] = []
    at, end = start, ","
    while end == ",":
        item = _ITEM.match(text, at)
        if item is None:
            help = "put a value with quotes in other quotes"
            raise _bad(text, f"cannot read the options from {text[at:]!r} on", help)
        items.append((item["name"], item["value"]))
        at, end = item.end(), item["end"]
    if not end:
        raise _bad(text, "the bracket of the options is not closed", f"write {kind.name}[device=CPU]:PATH")
    return [] if items == [("", None)] else items, text[at:]


def _checked(text: str, kind: Kind, name: str, value: str | None, earlier: Mapping[str, str]) -> str:
    """Return the value of an option. Raises EngineError (IR701) unless the kind has it, takes the value, and once."""
    is_property = kind.takes_properties and PROPERTY.fullmatch(name)
    if name not in kind.options and not is_property:
        near = nearest(name, kind.options)
        listed = f"its options are {', '.join(kind.options)}" if kind.options else f"write {kind.name}:PATH"
        raise _bad(text, f"{kind.name} has no option {name!r}", f"did you mean {near[0]}?" if near else listed)
    option = _VALUE if is_property else kind.takes.get(name, OPTIONS[name])
    content = _unquoted(value or "")
    if not option.pattern.fullmatch(content):
        problem = "has no value" if not value else f"cannot be {content!r}"
        raise _bad(text, f"the option {name} {problem}", f"pass {option.words}")
    if name in earlier:
        raise _bad(text, f"the option {name} is passed twice", "remove one of the two")
    return content


def _unquoted(value: str) -> str:
    value = value.strip()
    return value[1:-1] if value[:1] in ("'", '"') else value


def _quoted(value: str) -> str:
    return value if not re.search(r"""[,\]\s"']""", value) else f"'{value}'" if '"' in value else f'"{value}"'


def _bad(text: str, problem: str, help: str) -> EngineError:
    return EngineError(diagnostic("IR701", f"cannot use {text!r}: {problem}", help=help))
