"""Give a model other input shapes, to check whether it can be reshaped."""

from __future__ import annotations

from dataclasses import replace

from irrun.ir.parse import Parsed
from irrun.model import Shapes

__all__ = ["Shapes", "reshaped"]


def reshaped(parsed: Parsed, shapes: Shapes) -> Parsed:
    """Return a model whose inputs have other shapes, as ``Model.reshape``, with the problems of its file.

    Raises FeedError (IR601) if the model has no such input or a shape cannot be parsed.
    """
    return replace(parsed, model=parsed.model.reshape(shapes))
