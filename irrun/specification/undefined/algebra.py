"""Behaviours of matrices and normalisations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from irrun.specification.undefined.forms import Behaviour, Inputs, Undefined

__all__ = ["BEHAVIOURS"]


def _other_inputs(op: Any, inputs: Inputs) -> Undefined:
    """The page gives the inputs another order, layout or meaning than OpenVINO."""
    return True


def _singular(op: Any, inputs: Inputs) -> Undefined:
    """A matrix that has no inverse, or none that its type can tell from this."""
    data = inputs[0]
    if data is None or not data.size:
        return data is None
    matrices = data.astype(np.float64)
    with np.errstate(all="ignore"):
        known = np.isfinite(matrices).all((-2, -1))
        rank = np.linalg.matrix_rank(np.where(np.expand_dims(known, (-2, -1)), matrices, 0))
    return np.expand_dims(rank < data.shape[-1], (-2, -1))


def _adjoint(op: Any, inputs: Inputs) -> Undefined:
    """The page calls the adjugate and the conjugate transpose the adjoint; OpenVINO transposes the inverse."""
    return op.adjoint


def _no_deviation(op: Any, inputs: Inputs) -> Undefined:
    """A channel whose variance and ``epsilon`` are together not positive."""
    variance = inputs[4]
    if variance is None or inputs[0] is None:
        return True
    data = inputs[0] if op.since >= 5 else inputs[2]
    rank = 2 if data is None else data.ndim
    none = ~(variance.astype(np.float64) + op.epsilon > 0)
    return none.reshape((1, -1) + (1,) * (rank - 2))


def _even_size(op: Any, inputs: Inputs) -> Undefined:
    """The formula makes a region of even size one element larger; OpenVINO makes it one smaller."""
    return op.size % 2 == 0


def _negative_axes(op: Any, inputs: Inputs) -> Undefined:
    """The page does not say what negative axes are."""
    axes = inputs[1]
    return axes is None or bool((axes < 0).any())


def _both_ways(op: Any, inputs: Inputs) -> Undefined:
    """``across_channels`` and ``reduction_axes`` together."""
    return op.across_channels and bool(op.reduction_axes)


def _axis_twice(op: Any, inputs: Inputs) -> Undefined:
    """An axis that is named more than once."""
    data, axes = inputs[:2]
    if data is None or axes is None:
        return True
    return len({axis % max(1, data.ndim) for axis in axes.tolist()}) < axes.size


def _no_axes(op: Any, inputs: Inputs) -> Undefined:
    """Empty ``axes``: the formula keeps the sign and uses ``eps``, and a sentence asks for 1."""
    axes = inputs[1]
    return axes is None or not axes.size


def _sizes_as_inputs(op: Any, inputs: Inputs) -> Undefined:
    """Sizes that are inputs, while the page has attributes for them."""
    return len(inputs) > 1


BEHAVIOURS: Final[Mapping[str, Behaviour]] = {
    "adjoint": _adjoint,
    "axis-twice": _axis_twice,
    "both-ways": _both_ways,
    "even-size": _even_size,
    "negative-axes": _negative_axes,
    "no-axes": _no_axes,
    "no-deviation": _no_deviation,
    "other-inputs": _other_inputs,
    "singular": _singular,
    "sizes-as-inputs": _sizes_as_inputs,
}
