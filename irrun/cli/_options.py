"""Options that several commands share, or that need reading."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click

from irrun.checking.reshaping import Shapes

__all__ = ["Size", "format_option", "load_plugin", "plugin_option", "plugins", "shape_option", "weights_option"]

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


_PLUGIN: Final = "irrun_plugin_"


def load_plugin(file: str) -> None:
    """Import a file that registers operations (``@irrun.op``). Raises ValueError and whatever stands in it."""
    name = _PLUGIN + re.sub(r"[^a-zA-Z0-9_]", "_", Path(file).stem)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ValueError("it is no Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def plugins() -> list[str]:
    """The files that have been imported so."""
    modules = [module for name, module in sys.modules.items() if name.startswith(_PLUGIN)]
    return [module.__file__ for module in modules if module.__file__]


def _import(ctx: click.Context, param: click.Parameter, files: Sequence[str]) -> None:
    for file in files:
        try:
            load_plugin(file)
        except OSError as error:
            raise click.BadParameter(
                f"cannot read {file}: {(error.strerror or str(error)).lower()}", ctx, param
            ) from None
        except Exception as error:
            frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
            place = f"{file}:{frames[-1].lineno}" if frames else file
            raise click.BadParameter(f"{place}: {type(error).__name__}: {error}", ctx, param) from None


plugin_option: Final = click.option(
    "--plugin", metavar="FILE.py", multiple=True, callback=_import, expose_value=False, is_eager=True,
    help="Operations of your own, registered with @irrun.op. May be repeated.",
)  # fmt: skip


def shape_option(help: str) -> Any:
    """``--shape NAME=SHAPE``, as ``shapes``."""
    return click.option(
        "--shape", "shapes", metavar="NAME=SHAPE", multiple=True, callback=_shapes, help=f"{help} May be repeated."
    )


def _shapes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> Shapes:
    """Each ``NAME=SHAPE``; a name may hold a ``=`` itself."""
    found: dict[str | int, str] = {}
    for value in values:
        name, equals, shape = value.rpartition("=")
        if not equals:
            raise click.BadParameter(f"{value} is not NAME=SHAPE, such as data=[1,3,224,224]", ctx, param)
        if name in found:
            raise click.BadParameter(f"{name} is given twice", ctx, param)
        found[name] = shape
    return found
