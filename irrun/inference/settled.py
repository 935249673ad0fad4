"""Infer the outputs of a model, and take the declared ones where inference fails."""

from __future__ import annotations

from collections.abc import Sequence

from irrun.inference.bind import bind_all
from irrun.inference.propagate import Values, declared, propagate
from irrun.model import Layer, Model
from irrun.opdef import Value

__all__ = ["settled"]


def settled(model: Model) -> Values:
    """Return the value of every output: the inferred one, or the declared one where inference fails.

    An inferred value is made more precise by the declared type and shape where these agree with it.
    """

    def settle(layer: Layer, inferred: tuple[Value, ...] | Exception) -> Sequence[Value]:
        claims = declared(layer)
        if isinstance(inferred, Exception) or len(inferred) != len(claims):
            return claims
        return [_best(value, claim) for value, claim in zip(inferred, claims)]

    values: Values = {}
    propagate(model, {layer.id: op for layer, op, _ in bind_all(model)}, settle, values, {})
    return values


def _best(value: Value, claim: Value) -> Value:
    """Return the inferred value, made more precise by the declared type and shape where these agree with it."""
    element_type = claim.type if value.type.kind == "dynamic" else value.type
    # a port without dims declares a scalar or nothing at all: ignore it
    shape = value.shape.meet(claim.shape) if claim.shape.dims else value.shape
    return Value(element_type, value.shape) if shape is None else Value(element_type, shape, value.data)
