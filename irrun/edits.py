"""Edits of an IR file that leave every other byte as it is: comments, indentation, quotes, line ends, encoding.

Elements are named by their ordinal, as ``Source`` has them. What is not written plainly enough to be changed in
place (a dim with a comment within it) gives no edits.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from irrun.source import Source, encoding_of

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
    """Bytes ``start`` to ``end`` of a file become ``text``.

    Lines and columns count from 1, columns in characters; ``end_column`` is the one past the last.
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
    """What puts a finding right. ``safe`` unless it changes what the model means."""

    title: str
    edits: Edits
    safe: bool = True


# ---------------------------------------------------------------------------------------------
# applying


def apply(source: Source, edits: Iterable[Edit]) -> bytes:
    """The document with ``edits``, none of which may overlap another."""
    _, codec = _encoding(source.data)
    parts: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.start < at:
            raise ValueError("edits overlap")
        parts += source.data[at : edit.start], edit.text.encode(codec)
        at = edit.end
    return b"".join([*parts, source.data[at:]])


_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip


def _encoding(data: bytes) -> tuple[int, str]:
    """The length of the byte order mark, and the codec of what follows it."""
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return len(mark), codec
    return 0, encoding_of(data)


def _edit(source: Source, start: int, end: int, text: str) -> Edits | None:
    """Replace the characters that are bytes ``start`` to ``end`` of ``source.utf8``."""
    if source.whole is not None:  # a page: what was read is not quite what stands there
        return None
    mark, codec = _encoding(source.data)
    first, last = start, end
    if codec != "utf-8":
        first, last = (len(source.utf8[:offset].decode().encode(codec)) for offset in (start, end))
    first, last = mark + first, mark + last
    try:
        if source.data[first:last].decode(codec) != source.utf8[start:end].decode():
            return None  # an encoding that writes one character in several ways
        text.encode(codec)
    except UnicodeError:
        return None
    return (Edit(first, last, text, *source.place(start), *source.place(end)),)


# ---------------------------------------------------------------------------------------------
# attributes

_TAG: Final = re.compile(rb"""<([^\s"'<>/]+)[^"'<>]*(?:"[^"<]*"[^"'<>]*|'[^'<]*'[^"'<>]*)*>""")
_ATTRIBUTE: Final = re.compile(rb"""(?<=\s)([^\s=<>"'/]+)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")


def _tag(source: Source, node: int) -> re.Match[bytes] | None:
    if not source.data:  # a model that is being made in Python
        return None
    return _TAG.match(source.utf8, source.offset(node))


def _attribute(source: Source, node: int, name: str) -> re.Match[bytes] | None:
    tag = _tag(source, node)
    if tag is None:
        return None
    found = _ATTRIBUTE.finditer(source.utf8, tag.end(1), tag.end())
    return next((a for a in found if a[1] == name.encode()), None)


def set_attribute(source: Source, node: int, name: str, value: str) -> Edits | None:
    """Give an attribute that is there another value."""
    return _revalued(source, node, name, lambda _: value)


def set_items(source: Source, node: int, name: str, items: Sequence[str]) -> Edits | None:
    """Give an attribute that is a list other items, and leave those that are right as they stand."""

    def revalued(text: str) -> str:
        parts = text.split(",") if text.strip() else []
        if len(parts) != len(items):
            return ",".join(items)
        kept = (part if part.strip() == item else part.replace(part.strip(), item) for part, item in zip(parts, items))
        return ",".join(kept)

    return _revalued(source, node, name, revalued)


def _revalued(source: Source, node: int, name: str, value: Callable[[str], str]) -> Edits | None:
    found = _attribute(source, node, name)
    if found is None:
        return None
    group = 2 if found[2] is not None else 3
    text = found[group].decode()
    return _edit(source, found.start(group), found.end(group), escape(value(text)))


def rename_attribute(source: Source, node: int, name: str, to: str) -> Edits | None:
    found = _attribute(source, node, name)
    return None if found is None else _edit(source, found.start(1), found.end(1), to)


def add_attribute(source: Source, node: int, name: str, value: str) -> Edits | None:
    """Write an attribute after those that are there."""
    tag = _tag(source, node)
    if tag is None:
        return None
    last = max((a.end() for a in _ATTRIBUTE.finditer(source.utf8, tag.end(1), tag.end())), default=tag.end(1))
    return _edit(source, last, last, f' {name}="{escape(value)}"')


# ---------------------------------------------------------------------------------------------
# elements

_DIM: Final = re.compile(rb"<([^\s<>/]+)[^<>]*(?<!/)>\s*([^<>&]*?)\s*</\1\s*>")
_EMPTY: Final = re.compile(rb"<([^\s<>/]+)[^<>]*?(\s*/>|></\1\s*>)")


def remove_element(source: Source, node: int) -> Edits | None:
    """Remove an element without children, with the space before it."""
    found = _EMPTY.match(source.utf8, source.offset(node))
    return None if found is None else _edit(source, _before(source, found.start()), found.end(), "")


def set_dims(source: Source, port: int, dims: Sequence[int]) -> Edits | None:
    """Declare ``dims`` (-1 for an unknown one) at a port. Those that are added stand as their neighbours do."""
    new = [str(dim) for dim in dims]
    found = [_DIM.match(source.utf8, source.offset(node)) for node in source.children(port, "dim")]
    if None in found:
        return None
    elements = [element for element in found if element is not None]
    old = [element[2].decode() for element in elements]
    if not old and new:
        return _first_dims(source, port, new)
    # all but a middle part are the same: its dims are changed, and then some removed or added
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
    return _joined(edits)


def _first_dims(source: Source, port: int, new: Sequence[str]) -> Edits | None:
    """Dims of a port that has none: each on a line, one level deeper than the port."""
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
    """The line end and indentation before an element; empty where something else stands before it on its line."""
    start = source.offset(node)
    space = source.utf8[_before(source, start) : start].decode()
    line = max(space.rfind("\n"), space.rfind("\r"))
    if line < 0:
        return ""
    return space[line - 1 if space[line - 1 : line + 1] == "\r\n" else line :]


def _before(source: Source, offset: int) -> int:
    """Where the white space before ``offset`` begins."""
    while offset > 0 and source.utf8[offset - 1] in b" \t\r\n":
        offset -= 1
    return offset


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many items the two begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def _joined(edits: Iterable[Edits | None]) -> Edits | None:
    found = list(edits)
    return None if None in found else tuple(edit for some in found for edit in some or ())
