"""Options that several commands share, or that need reading."""

from __future__ import annotations

import re
from typing import Any, Final

import click

__all__ = ["Size", "format_option", "weights_option"]

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Size(click.ParamType):
    """A number of bytes such as ``2GiB``, ``500M`` or ``1000``; units are powers of 1024."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", value, re.IGNORECASE)
        size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
        if size <= 0:
            self.fail(f"{value!r} is no size; write it as 2GiB or 500MiB", param, ctx)
        return size


def format_option(*formats: str) -> Any:
    return click.option(
        "--format", "form", type=click.Choice(formats), default=formats[0], show_default=True, help="How to print it."
    )


weights_option: Final = click.option(
    "-w", "--weights", metavar="BIN", help="The .bin file. [default: beside the .xml under the same name]"
)
