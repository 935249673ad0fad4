"""Generate inputs for a model: random numbers, zeros, ones or ascending numbers, of any element type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from irrun.diagnostics import ModelError
from irrun.inference.bind import bind
from irrun.inference.layer import input_at
from irrun.model import Layer, Model
from irrun.model.lookup import bad_feed
from irrun.opdef import Op, Value
from irrun.planning.failures import refuse_too_large
from irrun.running.live import default_max_memory
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, text_array, type_set

__all__ = ["GENERATORS", "declared", "draw", "element_types", "generate", "smallest"]

GENERATORS: Final = ("random", "zeros", "ones", "arange")
"""The ways in which ``generate`` can fill an array."""


def draw(
    model: Model,
    seed: int = 0,
    shapes: Mapping[str | int, Sequence[int]] | None = None,
    given: Mapping[str | int, np.ndarray] | None = None,
    max_memory: int | None = None,
) -> dict[int, np.ndarray]:
    """Return a random array for each input that is not in ``given`` and has no contents in a comment of a fragment.

    The arrays are keyed by position, as an Executable accepts them. ``shapes`` and ``given`` are keyed by name or
    position. A dynamic input without an entry in ``shapes`` gets the smallest shape (see ``smallest``). Each input has
    a random generator of its own, so its values do not depend on which other inputs are given. Raises FeedError
    (IR601) for an unknown input or a shape that does not fit, and ExecutionError (IR604) for an array of more than
    ``max_memory`` bytes (see ``default_max_memory``).
    """
    arrays = {model.known_input(key): array for key, array in (given or {}).items()}
    wanted = {model.known_input(key): tuple(dims) for key, dims in (shapes or {}).items()}
    types = element_types(model, arrays)
    return {
        number: generate("random", model, number, types[number], wanted.get(number), seed, max_memory)
        for number, parameter in enumerate(model.parameters)
        if number not in arrays and parameter.id not in model.contents
    }


def generate(
    how: str,
    model: Model,
    number: int,
    element_type: ElementType,
    dims: tuple[int, ...] | None = None,
    seed: int = 0,
    max_memory: int | None = None,
) -> np.ndarray:
    """Return an array for the input at position ``number``; ``how`` is one of GENERATORS.

    Random floats are in [-1, 1), random integers from 0 to 9, and random strings are short words. Without ``dims``
    the array has the smallest shape. Raises FeedError (IR601) if ``dims`` do not fit the input, and ExecutionError
    (IR604) if the array takes more than ``max_memory`` bytes (see ``default_max_memory``).
    """
    parameter = model.parameters[number]
    shape = declared(model, parameter)[1]
    if dims is None:
        dims = smallest(shape)
    elif not shape.fits(dims):
        help = "--shape NAME=SHAPE (Model.reshape) gives the input another shape, where the layers after it allow one"
        raise bad_feed(model, parameter, f"takes {shape}, not {PartialShape.of(dims)}", help)
    refuse_too_large(model, parameter, Value(element_type, PartialShape.of(dims)), max_memory or default_max_memory())
    if how == "random":
        return _random(element_type, dims, np.random.default_rng((seed, number)))
    if how == "arange":
        return _counting(element_type, math.prod(dims)).reshape(dims)
    return _cast(np.broadcast_to(np.int64(how == "ones"), dims), element_type)


# ---------------------------------------------------------------------------------------------
# element types and shapes of the inputs


def declared(model: Model, parameter: Layer) -> tuple[ElementType, PartialShape]:
    """Return the element type and shape that an input declares. Raises ModelError if its attributes are malformed."""
    op, problems = bind(model, parameter)
    if op is None:
        raise ModelError(problems)
    attributes: Any = op
    return attributes.element_type, attributes.shape


def smallest(shape: PartialShape) -> tuple[int, ...]:
    """Return the smallest shape that fits and is not empty, if there is one.

    An unknown dim becomes 1 or its lower bound, whichever is greater. An unknown rank becomes a scalar.
    """
    if shape.dims is None:
        return ()
    return tuple(d.lo if d.is_static else min(max(d.lo, 1), d.hi) for d in shape)


def element_types(model: Model, arrays: Mapping[int, np.ndarray]) -> list[ElementType]:
    """Return the element type of each input, in Parameter order. ``arrays`` holds those passed, by position.

    An input that declares no type (in a fragment) has the type of its array. Without an array, it gets the type of
    the inputs that must agree with it, or else the first of f32, i64 and boolean that its consumers accept.
    """
    types: dict[int, ElementType] = {}
    undecided: list[Layer] = []
    for number, parameter in enumerate(model.parameters):
        array = arrays.get(number)
        if array is None and parameter.id in model.contents:
            array = model.contents[parameter.id][0]
        element_type = declared(model, parameter)[0]
        if element_type.kind == "dynamic" and array is not None:
            element_type = ElementType.of(array.dtype) or element_type
        types[parameter.id] = element_type
        if element_type.kind == "dynamic":
            undecided.append(parameter)
    if undecided:
        choice = _Choice(model, types)
        for parameter in undecided:
            types[parameter.id] = choice.of(parameter)
    return [types[parameter.id] for parameter in model.parameters]


class _Choice:
    """Chooses element types for Parameters that declare none. ``types`` are those of the Parameters, by layer id."""

    def __init__(self, model: Model, types: Mapping[int, ElementType]) -> None:
        self.model, self.types = model, types
        self.ops: dict[int, Op | None] = {}
        self.agreed: dict[tuple[int, str], ElementType] = {}
        """The known type of a type variable, by layer id and name of the variable."""

    def of(self, parameter: Layer) -> ElementType:
        """Return the type of the inputs that must agree with a Parameter, or one that all its consumers accept."""
        allowed = type_set("any")
        for id, position in self.model.readers.get((parameter.id, 0), ()):
            if id not in self.ops:
                self.ops[id] = bind(self.model, self.model.layers[id])[0]
            op = self.ops[id]
            port = None if op is None else input_at(op.inputs, position)
            if op is None or port is None:
                continue
            allowed &= type_set(op.types.get(port.type, port.type))
            if port.type in op.types and (agreed := self._agreed(id, op, port.type)) is not None:
                return agreed
        for name in ("f32", "i64", "boolean"):
            if ELEMENT_TYPES[name] in allowed:
                return ELEMENT_TYPES[name]
        return min(allowed, key=str, default=ELEMENT_TYPES["f32"])

    def _agreed(self, id: int, op: Op, variable: str) -> ElementType | None:
        """Return the type of the first input of a layer that shares a type variable and has a type."""
        if (id, variable) not in self.agreed:
            for position, feed in enumerate(self.model.feeds[id]):
                port = input_at(op.inputs, position)
                if port is not None and feed is not None and port.type == variable:
                    type = self.types.get(feed[0]) or self.model.layers[feed[0]].outputs[feed[1]].type
                    if type is not None and type.kind != "dynamic":
                        self.agreed[id, variable] = type
                        break
        return self.agreed.get((id, variable))


# ---------------------------------------------------------------------------------------------
# values


def _random(element_type: ElementType, dims: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if element_type.kind == "boolean":
        return np.asarray(rng.random(dims, np.float32) < 0.5)
    if element_type.kind == "string":
        lengths = rng.integers(1, 9, math.prod(dims))
        words = ["".join(map(chr, rng.integers(ord("a"), ord("z") + 1, n))) for n in lengths]
        return text_array(words, dims)
    if element_type.is_integer:
        return _cast(rng.integers(0, min(10, _most(element_type) + 1), dims), element_type)
    if element_type.name == "f8e8m0":  # this type holds only powers of two
        return _cast(np.exp2(rng.integers(-3, 4, dims)), element_type)
    numbers = rng.random(dims, np.float64 if element_type.bits == 64 else np.float32) * 2 - 1
    return _cast(numbers, element_type)


def _counting(element_type: ElementType, count: int) -> np.ndarray:
    """Return 0, 1, 2, …, which start again from 0 before the first integer that the type cannot represent."""
    numbers = np.arange(count)
    if element_type.kind == "float":
        numbers %= 2 << ml_dtypes.finfo(element_type.dtype).nmant
    elif element_type.kind == "boolean":
        numbers %= 2
    elif element_type.is_integer and element_type.bits < 64:
        numbers %= _most(element_type) + 1
    return _cast(numbers, element_type)


def _most(element_type: ElementType) -> int:
    """Return the greatest value of an integer type."""
    return (1 << (element_type.bits - (element_type.kind == "int"))) - 1


def _cast(numbers: Any, element_type: ElementType) -> np.ndarray:
    if element_type.kind == "string":
        return text_array(map(str, np.asarray(numbers).ravel().tolist()), np.shape(numbers))
    return np.asarray(numbers).astype(element_type.dtype)
