"""Edit an IR file in place and keep every other byte: comments, indentation, quotes, line ends and encoding.

An element is identified by its ordinal, as in ``Source``. A function returns None if it cannot make the edit in place,
for example because a ``<dim>`` contains a comment, or because the source is a fragment of a larger document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from irrun.base.source import Source, codec_of

__all__ = [
    "Edit",
    "Edits",
    "Fix",
    "add_attribute",
    "apply",
    "remove_element",
    "rename_attribute",
    "set_attribute",
    "set_dims",
    "set_items",
]


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of bytes ``start`` to ``end`` (exclusive) of a file by ``text``.

    The other fields are the same range as lines and columns, for editors. They count from 1, columns in characters.
    ``end_column`` is the column after the last character.
    """

    start: int
    end: int
    text: str
    line: int
    column: int
    end_line: int
    end_column: int


Edits = tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """The edits that fix a diagnostic. ``safe`` is False if they may change the meaning of the model.

    ``otherwise`` is the fix to apply if these edits do change what the model computes.
    """

    title: str
    edits: Edits
    safe: bool = True
    otherwise: Fix | None = None


# ---------------------------------------------------------------------------------------------
# applying


def apply(source: Source, edits: Iterable[Edit]) -> bytes:
    """Return the bytes of the document with all ``edits`` made. Raises ValueError if two edits overlap."""
    _, codec = codec_of(source.data)
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise ValueError("edits overlap")
        parts += source.data[at : edit.start], edit.text.encode(codec)
        at = edit.end
    return b"".join([*parts, source.data[at:]])


def _edit(source: Source, start: int, end: int, text: str) -> Edits | None:
    """Return the edit that replaces bytes ``start`` to ``end`` of ``source.utf8`` by ``text``, whatever the encoding.

    Returns None if the file cannot be edited at these bytes, or if its encoding cannot represent ``text``.
    """
    if source.whole is not None:  # a fragment: its text may differ from the text of the page
        return None
    mark, codec = codec_of(source.data)
    try:
        if codec == "utf-8":
            first, last = mark + start, mark + end
        else:
            first, last = source.place_in_data(start), source.place_in_data(end)
        if source.data[first:last].decode(codec) != source.utf8[start:end].decode():
            return None  # the encoding has several byte sequences for one character, so the offsets do not match
        text.encode(codec)
    except UnicodeError:
        return None
    return (Edit(first, last, text, *source.place(start), *source.place(end)),)


# ---------------------------------------------------------------------------------------------
# attributes

_TAG: Final = re.compile(rb"""<([^\s"'<>/]+)[^"'<>]*(?:"[^"<]*"[^"'<>]*|'[^'<]*'[^"'<>]*)*>""")
_ATTRIBUTE: Final = re.compile(rb"""(?<=\s)([^\s=<>"'/]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")


_ESCAPED: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})


def _tag(source: Source, node: int) -> re.Match[bytes] | None:
    if not source.data:  # the model is built in Python and has no file
        return None
    return _TAG.match(source.utf8, source.offset(node))


def _attribute(source: Source, node: int, name: str) -> re.Match[bytes] | None:
    tag = _tag(source, node)
    if tag is None:
        return None
    attributes = _ATTRIBUTE.finditer(source.utf8, tag.end(1), tag.end())
    return next((a for a in attributes if a[1] == name.encode()), None)


def set_attribute(source: Source, node: int, name: str, value: str) -> Edits | None:
    """Replace the value of an existing attribute. ``value`` is plain text and is escaped here."""
    return _revalued(source, node, name, lambda _: value)


def set_items(source: Source, node: int, name: str, items: Sequence[str]) -> Edits | None:
    """Replace the items of an existing attribute that is a list separated by commas.

    If the number of items stays the same, the white space around each item is kept.
    """

    def revalued(text: str) -> str:
        parts = text.split(",") if text.strip() else []
        if len(parts) != len(items):
            return ",".join(items)
        return ",".join(_replaced(part, item) for part, item in zip(parts, items))

    return _revalued(source, node, name, revalued)


def _replaced(part: str, item: str) -> str:
    """Return ``part`` with its text replaced by ``item`` and the white space around the text kept."""
    space = len(part) - len(part.lstrip())
    return part[:space] + item + part[space + len(part.strip()) :]


def _revalued(source: Source, node: int, name: str, value: Callable[[str], str]) -> Edits | None:
    """Replace the value of an attribute by ``value(text)``, where ``text`` is its value as the file writes it."""
    attribute = _attribute(source, node, name)
    if attribute is None:
        return None
    group = 2 if attribute[2] is not None else 3
    text = attribute[group].decode()
    return _edit(source, attribute.start(group), attribute.end(group), value(text).translate(_ESCAPED))


def rename_attribute(source: Source, node: int, name: str, to: str) -> Edits | None:
    """Rename an existing attribute and keep its value."""
    attribute = _attribute(source, node, name)
    return None if attribute is None else _edit(source, attribute.start(1), attribute.end(1), to)


def add_attribute(source: Source, node: int, name: str, value: str) -> Edits | None:
    """Add an attribute after the existing ones. ``value`` is plain text and is escaped here."""
    tag = _tag(source, node)
    if tag is None:
        return None
    last = max((a.end() for a in _ATTRIBUTE.finditer(source.utf8, tag.end(1), tag.end())), default=tag.end(1))
    return _edit(source, last, last, f' {name}="{value.translate(_ESCAPED)}"')


# ---------------------------------------------------------------------------------------------
# elements

_DIM: Final = re.compile(rb"<([^\s<>/]+)[^<>]*(?<!/)>\s*([^<>&]*?)\s*</\1\s*>")
_EMPTY: Final = re.compile(rb"<([^\s<>/]+)[^<>]*?(\s*/>|></\1\s*>)")


def remove_element(source: Source, node: int) -> Edits | None:
    """Remove an empty element and the white space before it. Returns None if the element has any content."""
    element = _EMPTY.match(source.utf8, source.offset(node))
    return None if element is None else _edit(source, _before(source, element.start()), element.end(), "")


def set_dims(source: Source, port: int, dims: Sequence[int]) -> Edits | None:
    """Make a port declare ``dims``, with -1 for an unknown dim. Added dims are indented like their neighbours."""
    new = [str(dim) for dim in dims]
    matches = [_DIM.match(source.utf8, source.offset(node)) for node in source.children(port, "dim")]
    if None in matches:
        return None
    elements = [element for element in matches if element is not None]
    old = [element[2].decode() for element in elements]
    if not old and new:
        return _first_dims(source, port, new)
    # Leave the equal dims at both ends untouched. Change those between them, and remove or add dims after these.
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    middle, wanted = elements[start : len(old) - end], new[start : len(new) - end]
    edits: list[Edits | None] = [
        _edit(source, element.start(2), element.end(2), text) for element, text in zip(middle, wanted)
    ]
    removed = middle[len(wanted) :]
    edits += [_edit(source, _before(source, element.start()), element.end(), "") for element in removed]
    if added := wanted[len(middle) :]:
        space = source.utf8[_before(source, elements[0].start()) : elements[0].start()].decode()
        written = [f"<dim>{text}</dim>" for text in added]
        if end:
            at, text = elements[len(old) - end].start(), "".join(dim + space for dim in written)
        else:
            at, text = elements[-1].end(), "".join(space + dim for dim in written)
        edits.append(_edit(source, at, at, text))
    return _all_or_none(edits)


def _first_dims(source: Source, port: int, new: Sequence[str]) -> Edits | None:
    """Add dims to a port that has none, each on its own line and indented one level deeper than the port."""
    tag = _tag(source, port)
    if tag is None:
        return None
    own, above = (_space(source, node) for node in (port, source.parent(port)))
    step = own.removeprefix(above) if own.startswith(above) else ""
    within = own + (step or "\t") if own else ""
    text = "".join(f"{within}<dim>{dim}</dim>" for dim in new)
    name = tag[1].decode()
    if tag[0].endswith(b"/>"):
        start = tag.end() - 2
        return _edit(source, _before(source, start), tag.end(), f">{text}{own}</{name}>")
    if source.utf8.startswith(b"</", tag.end()):
        text += own
    return _edit(source, tag.end(), tag.end(), text)


def _space(source: Source, node: int) -> str:
    """Return the line end and indentation before an element; empty if it is not the first element on its line."""
    start = source.offset(node)
    space = source.utf8[_before(source, start) : start].decode()
    line = max(space.rfind("\n"), space.rfind("\r"))
    if line < 0:
        return ""
    return space[line - 1 if space[line - 1 : line + 1] == "\r\n" else line :]


def _before(source: Source, offset: int) -> int:
    """Return the offset at which the white space before ``offset`` begins."""
    while offset > 0 and source.utf8[offset - 1] in b" \t\r\n":
        offset -= 1
    return offset


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the common prefix of two sequences."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def _all_or_none(edits: Iterable[Edits | None]) -> Edits | None:
    """Return all edits in one tuple, or None if one of them cannot be made."""
    groups = list(edits)
    return None if None in groups else tuple(edit for group in groups for edit in group or ())
