"""Parse the texts of an IR document: integers, dims and tensor names."""

from __future__ import annotations

import re
from typing import Final

from irrun.types import INF, Dim

__all__ = ["parse_dim", "parse_integer", "tensor_names"]

_INTEGER: Final = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


def parse_integer(text: str) -> int | None:
    """Return the integer that the text of an attribute means; None if it is not an integer of at most 18 digits."""
    if text.isascii() and text.isdigit() and len(text) < 19:  # the usual case, without the regular expression
        return int(text)
    return int(text) if _INTEGER.fullmatch(text) else None


def parse_dim(text: str) -> Dim | None:
    """Return the dim that the text of a ``<dim>`` means; None if it is invalid."""
    text = text.strip()
    if text in ("-1", "?"):
        return Dim.unknown()
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) < INF:
        return Dim(int(text))
    return None


def tensor_names(text: str | None) -> tuple[str, ...]:
    r"""Return the tensor names in a text that separates them by commas. A comma within a name is written ``\,``."""
    if not text:
        return ()
    if "," not in text:
        return (text,)
    return tuple(name.replace("\\,", ",") for name in re.split(r"(?<!\\),", text))
