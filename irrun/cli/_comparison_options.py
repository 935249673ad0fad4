"""The options that `irrun compare` and `irrun bisect` share: samples, tolerances, and the limits of engines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click
import numpy as np

from irrun.arrays.pictures import Pictures
from irrun.cli._input_options import input_option, picture_options, seed_option
from irrun.cli._options import memory_option, plugin_option, timeout_option, together
from irrun.cli._samples import samples
from irrun.debug import Limit, Tolerances, read_tolerances
from irrun.engines import Limits, Side, parse_sides
from irrun.model import Model
from irrun.running.live import default_max_memory

__all__ = [
    "LimitOptions",
    "SampleOptions",
    "ToleranceOptions",
    "limit_options",
    "map_option",
    "model_options",
    "sample_options",
    "sides",
    "tolerance_options",
]

model_options: Final = together(
    click.option(
        "-w",
        "--weights",
        metavar="BIN",
        help="The .bin file of each side that is an IR file. KIND[weights=BIN]:PATH names that of one side. "
        "[default: next to the .xml, with the same name]",
    ),
    plugin_option,
)
"""``weights``: see ``sides``."""


def sides(reference: str, candidate: str, weights: str | None) -> tuple[Side, Side]:
    """Return the two sides that a user names. Raises EngineError (IR701) if a text describes no side."""
    first, second = parse_sides(reference, candidate)
    return first.with_weights(weights), second.with_weights(weights)


def _renames(context: click.Context, parameter: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Return the name in the candidate of each name of the reference."""
    renames: dict[str, str] = {}
    for text in texts:
        name, _, other = text.partition("=")
        if not name or not other:
            raise click.BadParameter(f"{text} is not REFERENCE=CANDIDATE; write it as ids=input_ids")
        if renames.setdefault(name, other) != other:
            raise click.BadParameter(f'"{name}" is paired with "{renames[name]}" and with "{other}"; pair it once')
    return renames


map_option: Final = click.option(
    "--map",
    "renames",
    metavar="REFERENCE=CANDIDATE",
    multiple=True,
    callback=_renames,
    help="Pair an input, an output or a layer of both sides that have other names. May be repeated.",
)
"""``renames``: the names in the candidate by those in the reference."""


@dataclass(frozen=True)
class SampleOptions:
    """The samples of a comparison: see ``irrun.cli._samples.samples``."""

    inputs: Sequence[str]
    count: int | None
    seed: int
    pictures: Pictures

    def drawn(self, max_memory: int) -> Callable[[Model], Iterator[dict[str | int, np.ndarray]]]:
        """Return a function that yields the samples for a model, of which none may exceed ``max_memory`` bytes."""
        return lambda model: samples(model, self.inputs, self.count, self.seed, max_memory, self.pictures)


sample_options: Final = together(
    input_option(" A folder holds a sample in each file."),
    click.option("--samples", "count", type=click.IntRange(min=1), metavar="N", help="The number of samples."),
    seed_option(),
    picture_options,
)
"""The options that fill ``SampleOptions``."""


@dataclass(frozen=True)
class ToleranceOptions:
    """The tolerances of a comparison. ``tolerances`` is the path of a file."""

    rtol: float | None
    atol: float | None
    tolerances: str | None

    def read(self) -> Tolerances:
        """Return the tolerances of the file, with those that hold for every value. Raises EngineError (IR703)."""
        read = Tolerances() if self.tolerances is None else read_tolerances(self.tolerances)
        return read.overridden(Limit(self.rtol, self.atol))


tolerance_options: Final = together(
    click.option(
        "--rtol", type=click.FloatRange(min=0), metavar="NUMBER", help="Relative tolerance of every compared value."
    ),
    click.option(
        "--atol", type=click.FloatRange(min=0), metavar="NUMBER", help="Absolute tolerance of every compared value."
    ),
    click.option("--tolerances", metavar="FILE.toml", help="Tolerances of element types, layers and outputs."),
)
"""The options that fill ``ToleranceOptions``."""


@dataclass(frozen=True)
class LimitOptions:
    """The limits of each engine: seconds for a request, and bytes of memory, None for the default."""

    timeout: float
    max_memory: int | None

    @property
    def memory(self) -> int:
        """The most bytes of memory."""
        return self.max_memory or default_max_memory()

    @property
    def limits(self) -> Limits:
        """The limits as an engine takes them."""
        return Limits(self.timeout, self.memory)


limit_options: Final = together(timeout_option(600, "an engine"), memory_option(what="each engine"))
"""The options that fill ``LimitOptions``."""
