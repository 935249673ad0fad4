"""Find the layer whose random numbers keep two runs of a model from being equal."""

from __future__ import annotations

from irrun.inference.bind import bind
from irrun.model import Layer, Model
from irrun.opdef import Op

__all__ = ["draws_anew", "unseeded_behind"]


def draws_anew(model: Model, layer: Layer) -> bool:
    """Return whether a layer, or a layer in its bodies, draws other random numbers in every run: it has no seed."""
    op = bind(model, layer)[0]
    if op is not None and op.unseeded:
        return True
    return any(draws_anew(body, inner) for body in layer.bodies.values() for inner in body.layers.values())


def unseeded_behind(model: Model, id: int) -> Layer | None:
    """Return a layer on which a layer depends, and which draws other random numbers in every run; None if none does.

    A layer with state depends on all layers with state.
    """
    ops: dict[int, Op | None] = {}
    waiting, seen = [id], {id}
    while waiting:
        layer = model.layers[waiting.pop()]
        if draws_anew(model, layer):
            return layer
        found = [feed[0] for feed in model.feeds[layer.id] if feed is not None]
        op = bind(model, layer)[0]
        if op is not None and not op.pure:
            ops = ops or {other.id: bind(model, other)[0] for other in model.layers.values()}
            found += [other for other, kind in ops.items() if kind is not None and not kind.pure]
        waiting += [other for other in found if other not in seen]
        seen.update(found)
    return None
