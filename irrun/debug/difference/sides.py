"""One of two models that are matched: what identifies a layer, and its neighbours.

The layers that decompress a weight count as one layer, a constant, so that a model and its compressed copy have the
same layers in the same places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Container, Hashable, Mapping
from functools import cached_property
from typing import Final

import numpy as np

from irrun.debug.difference.decompression import weights_of
from irrun.inference.settled import settled
from irrun.model import Layer, Model, is_constant
from irrun.model.weights import Weights

__all__ = ["Side"]


class Side:
    """A model, with what matching asks about its layers. ``weights`` are those of the whole model, for a body."""

    def __init__(self, model: Model, weights: Weights | None) -> None:
        self.model = model
        self.layers = model.layers
        self.weights = weights
        self._has_weights = weights is not None
        self._signatures: dict[int, int] = {}
        self._shapes: dict[int, tuple[str, ...]] = {}
        self.folded = weights_of(model)
        """The weights that count as one layer, by the id of the layer whose output is the matrix."""
        self._fold()

    def _fold(self) -> None:
        """Find the layers and edges that are left when each of the folded weights counts as one layer."""
        self.hidden = {id for weight in self.folded.values() for id in weight.hidden}
        self.feeds = {id: () if id in self.folded else feeds for id, feeds in self.model.feeds.items()}
        order = self.model.order
        known = set(order)
        whole = order if len(order) == len(self.layers) else (*order, *(id for id in self.layers if id not in known))
        self.ordered = tuple([id for id in whole if id not in self.hidden])
        """The ids of the layers: in topological order, and those that depend on a cycle in the order of the file."""
        self.readers: dict[int, list[tuple[int, int, int]]] = {}
        """The consumers of each layer: the position of the output, the id of the consumer, and its input."""
        for id in self.ordered:
            for slot, feed in enumerate(self.feeds[id]):
                if feed is not None:
                    self.readers.setdefault(feed[0], []).append((feed[1], id, slot))

    def unfold(self, kept: Container[int]) -> bool:
        """Count the layers of a weight one by one, unless its output is in ``kept``. Return whether any were folded."""
        left = {id: weight for id, weight in self.folded.items() if id in kept}
        if len(left) == len(self.folded):
            return False
        for id in self.folded.keys() - left.keys():
            self._signatures.pop(id, None)
        self.folded = left
        self._fold()
        return True

    def compare_weights(self, other: Side) -> None:
        """Leave the contents of constants out of the signatures if one of the two sides has no ``.bin``."""
        self._has_weights = other._has_weights = self._has_weights and other._has_weights

    def kind(self, layer: Layer) -> str:
        """Return the type of a layer in lower case, with one name for weights and both spellings of constants."""
        return "const" if is_constant(layer) or layer.id in self.folded else layer.type.lower()

    def codes(self, layer: Layer) -> Layer:
        """Return the Const that holds the codes of a folded weight; another layer is returned as it is."""
        weight = self.folded.get(layer.id)
        return layer if weight is None else self.layers[weight.layers[0]]

    def tensor(self, layer: Layer) -> str | None:
        """Return the first tensor name of a layer's first output, or of what a Result reads; None if it has none."""
        if layer.outputs:
            return next(iter(layer.outputs[0].names), None)
        return next(iter(layer.output_names), None)

    @cached_property
    def _values(self) -> Mapping[tuple[int, int], str]:
        return {key: str(value.shape) for key, value in settled(self.model).items()}

    def shapes(self, layer: Layer) -> tuple[str, ...]:
        """Return the shapes of a layer's outputs as text: inferred, or declared where inference fails.

        For a Result, return the shape of its input.
        """
        shapes = self._shapes.get(layer.id)
        if shapes is None:
            if layer.outputs:
                shapes = tuple([self._values.get((layer.id, i), "") for i in range(len(layer.outputs))])
            else:
                shapes = tuple([self._values.get(f, "") if f else "" for f in self.model.feeds[layer.id]])
            self._shapes[layer.id] = shapes
        return shapes

    def signature(self, layer: Layer) -> int:
        """Return a hash of all that a layer is by itself: type, attributes, shapes and the contents of a constant."""
        signature = self._signatures.get(layer.id)
        if signature is None:
            attributes = layer.attributes.items()
            if is_constant(layer):
                attributes = [(name, text) for name, text in attributes if name not in ("offset", "size")]
            bodies = tuple([(tag, len(body.layers)) for tag, body in layer.bodies.items()])
            own = (self.kind(layer), frozenset(attributes), self.shapes(layer), bodies, self._digest(layer))
            if layer.id in self.folded:
                own = (*own, *(self.signature(self.layers[id]) for id in self.folded[layer.id].hidden))
            signature = self._signatures[layer.id] = hash(own)
        return signature

    def _digest(self, layer: Layer) -> bytes | None:
        """Return a digest of samples of a constant's bytes, or None if they are not known."""
        if self.weights is None or not self._has_weights or not is_constant(layer):
            return None
        offset, size = (layer.attributes.get(name, "") for name in ("offset", "size"))
        if not (offset.isdecimal() and size.isdecimal()) or int(offset) + int(size) > len(self.weights):
            return None
        data = self.weights.bytes_at(int(offset), int(size))
        digest = hashlib.blake2b(size.encode(), digest_size=16)
        starts = np.linspace(0, max(len(data) - _SAMPLE, 0), _SAMPLES, dtype=np.int64)
        for start in dict.fromkeys(starts.tolist()):
            digest.update(data[start : start + _SAMPLE].data)
        return digest.digest()

    def is_telling(self, layer: Layer) -> bool:
        """Return whether the contents of a layer tell it from others. Those of a small constant do not."""
        codes = self.codes(layer)
        size = codes.attributes.get("size", "") if is_constant(codes) else ""
        return not size.isdecimal() or int(size) > _MAX_ANONYMOUS_BYTES

    def cones(self, tokens: Mapping[int, int], *, up: bool = True) -> dict[int, int]:
        """Return a hash of the sub-graph that leads to each layer or, with ``up=False``, that depends on it.

        The sub-graph ends at the layers in ``tokens``, which are paired: their token stands for all behind them. The
        hash of what depends on a layer also covers the paired producers of its layers.
        """
        hashes: dict[int, int] = {}

        def at(id: int) -> Hashable:
            token = tokens.get(id)
            return hashes.get(id) if token is None else (token,)

        for id in self.ordered if up else reversed(self.ordered):
            if id in tokens:
                continue
            feeds = self.feeds[id]
            if up:
                around = [None if f is None else (at(f[0]), f[1]) for f in feeds]
            else:
                around = sorted([hash((at(r), position, slot)) for position, r, slot in self.readers.get(id, ())])
                around += [(slot, tokens[f[0]], f[1]) for slot, f in enumerate(feeds) if f and f[0] in tokens]
            hashes[id] = hash((self.signature(self.layers[id]), tuple(around)))
        return hashes


_MAX_ANONYMOUS_BYTES: Final = 64
"""The bytes up to which a constant may well occur twice with another meaning: an axis, a shape, a scale."""
_SAMPLE: Final = 1 << 12
"""The bytes of a sample of a constant."""
_SAMPLES: Final = 16
"""The samples of a constant's bytes that tell it from others; a smaller constant is read as a whole."""
