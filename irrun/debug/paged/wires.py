"""Inputs of layers with paged attention that another input of the model should feed: tables and caches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from irrun.debug.paged.proof import Correction, every, with_source
from irrun.debug.paged.sides import ATTENTION, Paged
from irrun.model import Layer

__all__ = ["wrong_wires"]

_TABLES: Final = {5: "past_lens", 6: "subsequence_begins", 7: "block_indices", 8: "block_indices_begins"}
_CACHES: Final = {3: "key_cache", 4: "value_cache"}


def wrong_wires(paged: Paged, layer: Layer) -> tuple[str, Correction] | None:
    """Return which inputs of an attention layer come from other inputs of the model than their names say.

    A cache counts only if no layer reads the one with the number of the layer: layers may share caches.
    """
    texts: list[str] = []
    corrections: list[Correction] = []
    for position, name, right in _expected(paged, layer):
        source = paged.source(layer, position)
        if right.id != source.id:
            texts.append(f'input {position} ({name}) is "{source.name}", not "{right.name}"')
            corrections.append(partial(with_source, layer=layer, position=position, source=(right.id, 0)))
    return ("; ".join(texts), partial(every, corrections)) if texts else None


def _expected(paged: Paged, layer: Layer) -> Iterator[tuple[int, str, Layer]]:
    """Yield the position and the name of inputs of a layer, and the Parameter that should feed them."""
    model = paged.model.model
    inputs = {name: parameter for parameter in model.parameters for name in model.input_names(parameter)}
    number = [other.id for other in paged.layers(ATTENTION)].index(layer.id)
    for position, name in _TABLES.items():
        if name in inputs:
            yield position, name, inputs[name]
    for position, name in _CACHES.items():
        own = inputs.get(f"{name}.{number}")
        if own is not None and own.name in paged.unread:
            yield position, name, own
