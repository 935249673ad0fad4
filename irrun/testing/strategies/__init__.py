"""Hypothesis strategies: shapes, pairs of shapes that broadcast, tensors of any element type, and small valid models.

Only this package of irrun needs hypothesis: ``pip install hypothesis``.
"""

from __future__ import annotations

try:
    import hypothesis as _  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("irrun.testing.strategies needs hypothesis: pip install hypothesis") from error

from irrun.testing.strategies._arrays import broadcastable_shapes, shapes, tensors
from irrun.testing.strategies._models import GeneratedModel, models

__all__ = ["GeneratedModel", "broadcastable_shapes", "models", "shapes", "tensors"]
