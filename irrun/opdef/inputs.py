"""The inputs of an operation, as its class declares them."""

from __future__ import annotations

from dataclasses import dataclass, replace

__all__ = ["Input", "arity", "opt", "ports", "variadic"]


@dataclass(frozen=True, slots=True)
class Input:
    """The declaration of one input of an operation.

    ``type`` is a type variable of ``Op.types`` (``T``) or a set of element types, as ``irrun.types.type_set`` reads it.
    An input that is ``variadic`` is the last one, and stands for any number of inputs.
    """

    name: str
    type: str
    optional: bool = False
    variadic: bool = False


def ports(**declared: str | Input) -> tuple[Input, ...]:
    """Return the inputs of an operation in order: ``ports(data="T", axes=opt("i32 i64"))``."""
    return tuple(
        replace(port, name=name) if isinstance(port, Input) else Input(name, port) for name, port in declared.items()
    )


def opt(type: str) -> Input:
    """Return an optional input. A layer may leave it out even if later inputs are present."""
    return Input("", type, optional=True)


def variadic(type: str, *, least: int = 1) -> Input:
    """Return an input that a layer may repeat, at least ``least`` times (0 or 1). It must be the last input."""
    return Input("", type, optional=least == 0, variadic=True)


def arity(ports: tuple[Input, ...]) -> tuple[int, int | None]:
    """Return the least and the largest number of inputs that a declaration allows, the latter None if it is open."""
    return sum(not port.optional for port in ports), None if ports and ports[-1].variadic else len(ports)
