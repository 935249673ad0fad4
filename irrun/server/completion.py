"""Complete the text before the cursor: layer types, operation sets, attributes and their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from irrun.opdef import Attribute, Op, all_ops, find, resolve
from irrun.server.buffer import Buffer
from irrun.types import ELEMENT_TYPES

__all__ = ["Completion", "completions"]

_FAR: Final = 1 << 16
"""The bytes before the cursor in which its tag and its layer begin."""
_TYPED: Final = re.compile(r"""\s([\w.-]+)\s*=\s*(["'])([^"'<>]*)$""")
_ATTRIBUTE: Final = re.compile(r"""\s([\w.-]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")

_ATTRIBUTES: Final = {
    "net": ("name", "version"),
    "layer": ("id", "name", "type", "version"),
    "port": ("id", "precision", "names"),
    "edge": ("from-layer", "from-port", "to-layer", "to-port"),
}
"""The attributes of the elements of an IR that are not those of an operation."""


class Completion(NamedTuple):
    """A text for the place of the word that is typed, and what it is."""

    text: str
    detail: str
    is_value: bool
    """Whether it is a value within quotes, not the name of an attribute."""


def completions(text: Buffer, position: tuple[int, int]) -> list[Completion]:
    """Return what may be typed at a position: in a tag, the names of attributes; between quotes, their values."""
    offset = text.offset(*position)
    before = bytes(text.data[max(offset - _FAR, 0) : offset]).decode("utf-8", "replace")
    start = before.rfind("<")
    tag = re.match(r"<([\w]+)\s", before[start:]) if start >= 0 else None
    if tag is None or ">" in re.sub(r""""[^"]*"|'[^']*'""", "", before[start:]):
        return []
    inside = before[start:]
    typed = _TYPED.search(inside)
    layer = _layer(before)
    if typed is not None:
        values = _values(tag[1], typed[1], layer, _written(inside))
        return [Completion(value, detail, True) for value, detail in values if _begins(value, typed[3])]
    if re.search(r"""=\s*$|=\s*["'][^"']*$""", inside):
        return []
    word = re.search(r"[\w.-]*$", inside)
    after = bytes(text.data[offset : offset + _FAR]).decode("utf-8", "replace")
    known = set(_written(inside + re.split("[<>]", after, maxsplit=1)[0]))
    names = _names(tag[1], layer)
    prefix = word[0] if word else ""
    return [Completion(name, detail, False) for name, detail in names if name not in known and _begins(name, prefix)]


def _begins(text: str, prefix: str) -> bool:
    return text.lower().startswith(prefix.lower())


def _written(tag: str) -> dict[str, str]:
    """Return the attributes that are complete in a tag."""
    return {match[1]: match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(tag)}


def _layer(before: str) -> type[Op] | None:
    """Return the operation of the ``<layer>`` that began last before the cursor."""
    start = max(before.rfind("<layer "), before.rfind("<layer\t"), before.rfind("<layer\n"))
    tag = before[start : before.find(">", start)] if start >= 0 and before.find(">", start) >= 0 else ""
    attributes = _written(tag)
    number = re.fullmatch(r"opset(\d{1,3})", attributes.get("version", ""))
    versions = find(attributes.get("type", ""))
    if number is not None and (known := resolve(attributes.get("type", ""), int(number[1]))) is not None:
        return known
    return versions[max(versions)] if versions else None


def _names(tag: str, op: type[Op] | None) -> Iterator[tuple[str, str]]:
    if tag == "data" and op is not None:
        for attribute in op.attributes.values():
            yield attribute.name, attribute.expects + (", required" if attribute.required else "")
    for name in _ATTRIBUTES.get(tag, ()):
        yield name, ""


def _values(tag: str, name: str, op: type[Op] | None, written: dict[str, str]) -> Iterable[tuple[str, str]]:
    if tag == "layer" and name == "type":
        types = {cls.type: cls for cls in all_ops()}
        return [(type, (cls.__doc__ or "").strip().split("\n")[0].replace("``", "")) for type, cls in types.items()]
    if tag == "layer" and name == "version":
        return [(f"opset{number}", "") for number in sorted(find(written.get("type", "")), reverse=True)]
    if tag == "port" and name == "precision":
        return [(type.port_name, str(type)) for type in ELEMENT_TYPES.values()]
    if tag == "data" and op is not None:
        for attribute in op.attributes.values():
            if name in (attribute.name, *attribute.aliases):
                return [(word, attribute.expects) for word in _words(attribute)]
    return []


def _words(attribute: Attribute) -> Iterable[str]:
    """Return the texts that an attribute may have, if they are few."""
    if attribute.kind == "bool":
        return "true", "false"
    if "type" in attribute.kind:
        return [str(type) for type in ELEMENT_TYPES.values()]
    return attribute.words
