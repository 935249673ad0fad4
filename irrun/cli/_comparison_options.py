"""The options that `irrun compare` and `irrun bisect` share: samples, tolerances, and the limits of engines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from irrun.cli._options import Size, plugin_option
from irrun.engines import Side, parse_side

__all__ = ["limit_options", "model_options", "sample_options", "sides", "tolerance_options"]

Decorator = Callable[[Any], Any]


def _together(*options: Decorator) -> Decorator:
    """Return a decorator that adds several options, which the help lists in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


model_options: Final = _together(
    click.option(
        "-w", "--weights", metavar="BIN",
        help="The .bin file of each side that is an IR file. KIND[weights=BIN]:PATH names that of one side. "
        "[default: next to the .xml, with the same name]",
    ),
    plugin_option,
)  # fmt: skip
"""``weights``: see ``sides``."""


def sides(reference: str, candidate: str, weights: str | None) -> tuple[Side, Side]:
    """Return the two sides that a user names. Raises EngineError (IR701) if a text describes no side."""
    return parse_side(reference).with_weights(weights), parse_side(candidate).with_weights(weights)


sample_options: Final = _together(
    click.option(
        "-i", "--input", "inputs", metavar="NAME=SPEC", multiple=True,
        help="The value of an input, as in `irrun run`; or a .npz file, or a folder of samples. May be repeated.",
    ),
    click.option("--samples", "count", type=click.IntRange(min=1), metavar="N", help="The number of samples."),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random inputs."),
)  # fmt: skip
"""``inputs``, ``count`` and ``seed``: see ``irrun.cli._samples.samples``."""

tolerance_options: Final = _together(
    click.option("--rtol", type=click.FloatRange(min=0), help="Relative tolerance of every value."),
    click.option("--atol", type=click.FloatRange(min=0), help="Absolute tolerance of every value."),
    click.option("--tolerances", metavar="FILE.toml", help="Tolerances of element types, layers and outputs."),
)
"""``rtol``, ``atol`` and ``tolerances``, the path of a file."""

limit_options: Final = _together(
    click.option(
        "--timeout", type=click.FloatRange(min=0, min_open=True), default=600, show_default=True, metavar="SECONDS",
        help="The most seconds that an engine may take to load or run the model.",
    ),
    click.option(
        "--max-memory", type=Size(), help="The most memory of each engine, such as 2GiB. [default: 3/4 of the memory]"
    ),
)  # fmt: skip
"""``timeout``, in seconds, and ``max_memory``, in bytes, of each engine."""
