"""The texts that attributes may have, as enumerations and as patterns of XML Schema, which RELAX NG uses as well."""

from __future__ import annotations

import inspect
from typing import Final, NamedTuple

from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]  (no stubs)

from irrun.inference.bind import MEANINGLESS
from irrun.ir.bodies import CONDITION, PURPOSES
from irrun.opdef import Attribute, Op, is_custom
from irrun.types import ELEMENT_TYPES

__all__ = [
    "CONDITION", "DIM", "FOREIGN", "INTEGER", "PRECISION", "PURPOSE", "SLICING", "UNNUMBERED", "Texts", "body_parts",
    "described", "ignored", "serialized", "summary", "texts_of",
]  # fmt: skip


class Texts(NamedTuple):
    """A set of texts: any of ``words``, and any that match one of ``patterns``. Both empty: any text at all.

    Editors propose the words. The patterns hold the other spellings that a reader of the IR accepts.
    """

    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


# The patterns avoid backslashes, which not all editors read. They apply to texts whose spaces are collapsed.
_COMMA: Final = " ?, ?"
_INT: Final = "([+]|-)?[0-9]+"
_FLOAT: Final = (
    "([+]|-)?(([0-9]+[.]?[0-9]*|[.][0-9]+)([eE]([+]|-)?[0-9]+)?|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])"
)
_SIZE: Final = "[0-9]{1,19}"
_DIMENSION: Final = f"([?]|-1|{_SIZE}|[0-9]{{0,19}}[.][.][0-9]{{0,19}})"


def _list(item: str) -> str:
    return f"({item}({_COMMA}{item})*)?"


def _any_case(word: str) -> str:
    """Return a pattern for a word in upper and lower case."""
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in word)


def _words(*words: str) -> Texts:
    return Texts(tuple(dict.fromkeys(words)), tuple(dict.fromkeys(map(_any_case, words))))


INTEGER: Final = Texts(patterns=(_INT,))
DIM: Final = Texts(patterns=(f"(-1|{_SIZE})",))
"""The text of a ``<dim>`` of a port."""

_ATTRIBUTE_TYPES: Final = _words(*ELEMENT_TYPES)
PRECISION: Final = _words(*(t.port_name for t in ELEMENT_TYPES.values()), *ELEMENT_TYPES, "UNSPECIFIED", "undefined")
"""The text of the ``precision`` of a port."""
PURPOSE: Final = Texts((*PURPOSES, ""))
SLICING: Final = ("axis", "start", "end", "stride", "part_size")
"""The attributes of an entry of a port map that may be absent, besides ``purpose``."""
UNNUMBERED: Final = "[^0-9]+"
"""A pattern for the names of operation sets that are not OpenVINO's."""
FOREIGN: Final = ("meta_data", "quantization_parameters", "rt_info", "runtime_info", "pre-process", "statistics")
"""Elements of a ``<net>`` whose contents the IR leaves to the tools that write them."""


def texts_of(attribute: Attribute) -> Texts:
    """Return the texts that an attribute of ``<data>`` may have."""
    if attribute.kind == "choice":
        return _words(*attribute.words)
    if attribute.kind == "element_type":
        return _ATTRIBUTE_TYPES
    return _KINDS[attribute.kind]


_KINDS: Final = {
    "int": INTEGER,
    "size": Texts(patterns=("[+]?[0-9]+",)),
    "float": Texts(patterns=(_FLOAT,)),
    "bool": _words("true", "false", "1", "0"),
    "str": Texts(),
    "ints": Texts(patterns=(_list(_INT),)),
    "floats": Texts(patterns=(_list(_FLOAT),)),
    "static_shape": Texts(patterns=(_list(_SIZE),)),
    "shape": Texts(patterns=("[.][.][.]", _list(_DIMENSION))),
}
"""The texts of each kind of attribute whose texts do not depend on the declaration."""


def ignored(cls: type[Op]) -> list[str]:
    """Return the attributes that files may have for an operation although they mean nothing."""
    return [name for type, name in sorted(MEANINGLESS) if type == cls.type.lower()]


def body_parts(cls: type[Op]) -> tuple[str, ...]:
    """Return the tags of the elements that a layer with bodies has besides data, input and output."""
    if "bodies" not in cls.needs:
        return ()
    if "back_edges" in cls.needs:
        return ("port_map", "back_edges", "body")
    return ("then_port_map", "else_port_map", "then_body", "else_body")


def summary(cls: type[Op]) -> str:
    """Return the first sentence of the documentation of an operation, on one line."""
    first = inspect.cleandoc(cls.__doc__ or "").split("\n\n")[0]
    name = cls.type if is_custom(cls) else f"{cls.type}-{cls.since}"
    return f"{name}: {' '.join(first.split()).replace('``', '')}"


def described(attribute: Attribute) -> str:
    """Return what an attribute holds, with its default."""
    default = attribute.default
    if attribute.required:
        return f"{attribute.expects} (required)"
    if default is None or default == ():
        return attribute.expects
    text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"{attribute.expects} (default: {text.lower() if isinstance(default, bool) else text})"


def serialized(root: etree._Element) -> str:
    """Return a schema as an XML document."""
    etree.indent(root, "  ")
    return etree.tostring(root, encoding="unicode", pretty_print=True)
