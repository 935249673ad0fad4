"""The options for the inputs of a model: ``-i``, ``--seed``, ``--shape``, and how pictures are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click

from irrun.cli import _completion
from irrun.cli._options import together
from irrun.model import Shapes

__all__ = ["input_option", "picture_options", "seed_option", "shape_option"]


def input_option(more: str = "") -> Any:
    """Return the option ``-i``, which passes ``inputs`` to the command. ``more`` is added to its help."""
    return click.option(
        "-i",
        "--input",
        "inputs",
        metavar="NAME=SPEC",
        multiple=True,
        shell_complete=_completion.inputs,
        help=f"The value of an input: see `irrun run`. May be repeated.{more} [default: random]",
    )


def seed_option(what: str = "inputs", default: int | None = 0) -> Any:
    """Return the option ``--seed``, which determines all random ``what``. Without a default, the command chooses."""
    return click.option(
        "--seed",
        type=click.IntRange(min=0),
        metavar="N",
        default=default,
        show_default=True,
        help=f"Seed of random {what}.",
    )


def shape_option(more: str = "") -> Any:
    """Return the option ``--shape NAME=SHAPE``, which passes ``shapes`` to the command."""
    return click.option(
        "--shape",
        "shapes",
        metavar="NAME=SHAPE",
        multiple=True,
        callback=_shapes,
        help="Give an input another shape, such as [1,3,224,224], [?,1..512] or [...], as openvino.Model.reshape does. "
        f"May be repeated.{more}",
    )


def _shapes(ctx: click.Context, param: click.Parameter, values: Sequence[str]) -> Shapes:
    """Return the shape of each named input from texts ``NAME=SHAPE``. A name may contain a ``=`` itself."""
    shapes: dict[str | int, str] = {}
    for value in values:
        name, equals, shape = value.rpartition("=")
        if not equals:
            raise click.BadParameter(f"{value} is not NAME=SHAPE; write it as data=[1,3,224,224]", ctx, param)
        if name in shapes:
            raise click.BadParameter(f"the shape of {name} is passed twice; remove one of them", ctx, param)
        shapes[name] = shape
    return shapes


def _numbers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[float, ...]:
    """Return the numbers of a text such as ``123.7,116.3,103.5``, which may stand in brackets."""
    if text is None:
        return ()
    try:
        numbers = tuple(float(part) for part in text.strip("[]() ").split(","))
    except ValueError:
        raise click.BadParameter(f"{text} is no list of numbers; write it as 123.7,116.3,103.5", ctx, param) from None
    if param.name == "scale" and 0 in numbers:
        raise click.BadParameter("pixels are divided by it, so that it cannot be 0", ctx, param)
    return numbers


picture_options: Final = together(
    click.option(
        "--mean",
        metavar="N,...",
        callback=_numbers,
        help="Subtract from the pixels of pictures, which are 0 to 255: a number, or one for each channel.",
    ),
    click.option("--scale", metavar="N,...", callback=_numbers, help="Divide the pixels by this, after --mean."),
    click.option("--bgr/--rgb", default=False, show_default=True, help="The order of the channels."),
    click.option(
        "--resize",
        type=click.Choice(["stretch", "crop", "pad"]),
        default="stretch",
        show_default=True,
        help="How pictures get the input's size, bilinear: change the proportions, cut edges off, or add black edges.",
    ),
    click.option(
        "--layout",
        type=click.Choice(["NCHW", "NHWC"]),
        help="Where the channels are. [default: the dim that is 1 or 3]",
    ),
)
"""The options that fill ``irrun.arrays.pictures.Pictures``."""
