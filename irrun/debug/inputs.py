"""The inputs of a comparison: samples, each with the values of all inputs, and what each side takes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import numpy as np

from irrun.engines import Loaded
from irrun.model import Model
from irrun.running.generate import draw

__all__ = ["Feeds", "Inputs", "feeds_of", "samples_of"]

Feeds = Mapping[Any, np.ndarray]
"""The inputs of one sample, by name or position."""
Inputs = Feeds | Iterable[Feeds] | Callable[[Model], Iterable[Feeds]] | None
"""The inputs of one sample or of several, or a function that returns samples for a model. None means random inputs."""


def samples_of(model: Model, inputs: Inputs, count: int, seed: int) -> Iterator[dict[int, np.ndarray]]:
    """Yield the inputs of each sample by position, with random arrays for those that were not passed."""
    if callable(inputs):
        inputs = inputs(model)
    if inputs is None or isinstance(inputs, Mapping):
        given: Iterable[Mapping[Any, np.ndarray]] = [inputs or {}] * count
    else:
        given = cast("Iterable[Mapping[Any, np.ndarray]]", inputs)
    for number, feeds in enumerate(given):
        arrays = {model.known_input(key): np.asarray(array) for key, array in feeds.items()}
        yield {**draw(model, seed + number, given=dict(feeds)), **arrays}


def feeds_of(model: Model, loaded: Loaded, arrays: Mapping[int, np.ndarray]) -> dict[str | int, np.ndarray]:
    """Return the inputs of a side by position, from those of ``model``.

    An input belongs to the one that shares a name with it, otherwise to the one at the same position. One that the side
    does not have is left out.
    """
    own = [set(model.input_names(parameter)) for parameter in model.parameters]
    feeds: dict[str | int, np.ndarray] = {}
    for position, input in enumerate(loaded.inputs):
        named = [number for number, names in enumerate(own) if names & set(input.names)]
        number = named[0] if named else position
        if number in arrays:
            feeds[position] = arrays[number]
    return feeds
