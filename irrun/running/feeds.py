"""Inputs made up for a model: random numbers, zeros, ones or counting up, of any element type."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np

from irrun.diagnostics import ModelError
from irrun.inference.bind import bind
from irrun.inference.layer import input_at
from irrun.lookup import bad_feed, known
from irrun.model import Layer, Model
from irrun.opdef import Value
from irrun.running.plan import refuse_too_large
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, type_set

__all__ = ["GENERATORS", "declared", "draw", "element_types", "generate", "smallest"]

GENERATORS: Final = ("random", "zeros", "ones", "arange")


def draw(
    model: Model,
    seed: int = 0,
    shapes: Mapping[str | int, Sequence[int]] | None = None,
    given: Mapping[str | int, np.ndarray] | None = None,
) -> dict[int, np.ndarray]:
    """Random arrays for every input that is not in ``given`` and that no comment of a fragment tells.

    By position, as an Executable takes them. ``shapes`` and ``given`` are by name or position; where a
    dynamic input has no shape, the smallest one is taken (``smallest``). Each input has a generator of its
    own, so that it stays the same whichever others are given. Raises FeedError (IR601).
    """
    arrays = {known(model, key): array for key, array in (given or {}).items()}
    wanted = {known(model, key): tuple(dims) for key, dims in (shapes or {}).items()}
    types = element_types(model, arrays)
    return {
        number: generate("random", model, number, types[number], wanted.get(number), seed)
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
    """An array for input ``number``; ``how`` is one of GENERATORS. Refuses dims that do not fit or are too many.

    Floats are drawn from [-1, 1), integers from 0 to 9, strings are short words.
    """
    parameter = model.parameters[number]
    shape = declared(model, parameter)[1]
    if dims is None:
        dims = smallest(shape)
    elif not shape.fits(dims):
        raise bad_feed(model, parameter, f"takes {shape}, not {PartialShape.of(dims)}")
    if max_memory is not None:
        refuse_too_large(model, parameter, Value(element_type, PartialShape.of(dims)), max_memory)
    if how == "random":
        return _random(element_type, dims, np.random.default_rng((seed, number)))
    if how == "arange":
        return _counting(element_type, math.prod(dims)).reshape(dims)
    return _cast(np.broadcast_to(np.int64(how == "ones"), dims), element_type)


# ---------------------------------------------------------------------------------------------
# what the inputs of a model are


def declared(model: Model, parameter: Layer) -> tuple[ElementType, PartialShape]:
    """Element type and shape of an input. Raises ModelError where its attributes are malformed."""
    op, problems = bind(model, parameter)
    if op is None:
        raise ModelError(problems)
    attributes: Any = op
    return attributes.element_type, attributes.shape


def smallest(shape: PartialShape) -> tuple[int, ...]:
    """The smallest shape allowed that is not empty: 1 or the lower bound for an unknown dim, a scalar for any rank."""
    if shape.dims is None:
        return ()
    return tuple(d.lo if d.is_static else min(max(d.lo, 1), d.hi) for d in shape)


def element_types(model: Model, given: Mapping[int, np.ndarray]) -> list[ElementType]:
    """The element type that each input is to have.

    An input without one (of a fragment) gets that of the inputs that must agree with it, else the first of
    f32, i64 and boolean that its layer takes.
    """
    types: dict[int, ElementType] = {}
    undecided: list[Layer] = []
    for number, parameter in enumerate(model.parameters):
        array = given.get(number)
        if array is None and parameter.id in model.contents:
            array = model.contents[parameter.id][0]
        element_type = declared(model, parameter)[0]
        if element_type.kind == "dynamic" and array is not None:
            element_type = ElementType.of(array.dtype) or element_type
        types[parameter.id] = element_type
        if element_type.kind == "dynamic":
            undecided.append(parameter)
    for parameter in undecided:
        types[parameter.id] = _choose(model, parameter, types)
    return [types[parameter.id] for parameter in model.parameters]


def _choose(model: Model, parameter: Layer, types: Mapping[int, ElementType]) -> ElementType:
    allowed = type_set("any")
    for layer in model.layers.values():
        feeds = model.feeds[layer.id]
        op = bind(model, layer)[0] if (parameter.id, 0) in feeds else None
        if op is None:
            continue
        ports = [input_at(op.inputs, i) for i in range(len(feeds))]
        mine = ports[feeds.index((parameter.id, 0))]
        if mine is None:
            continue
        allowed &= type_set(op.types.get(mine.type, mine.type))
        for port, feed in zip(ports, feeds):  # those that share its type variable
            if port is not None and feed is not None and port.type == mine.type and port.type in op.types:
                other = types.get(feed[0]) or model.layers[feed[0]].outputs[feed[1]].type
                if other is not None and other.kind != "dynamic":
                    return other
    for name in ("f32", "i64", "boolean"):
        if ELEMENT_TYPES[name] in allowed:
            return ELEMENT_TYPES[name]
    return min(allowed, key=str, default=ELEMENT_TYPES["f32"])


# ---------------------------------------------------------------------------------------------
# values


def _random(element_type: ElementType, dims: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if element_type.kind == "boolean":
        return np.asarray(rng.random(dims, np.float32) < 0.5)
    if element_type.kind == "string":
        lengths = rng.integers(1, 9, math.prod(dims))
        words = ["".join(map(chr, rng.integers(ord("a"), ord("z") + 1, n))) for n in lengths]
        return np.array(words, np.str_).reshape(dims)
    if element_type.is_integer:
        return _cast(rng.integers(0, min(10, _most(element_type) + 1), dims), element_type)
    if element_type.name == "f8e8m0":  # powers of two only
        return _cast(np.exp2(rng.integers(-3, 4, dims)), element_type)
    numbers = rng.random(dims, np.float64 if element_type.bits == 64 else np.float32) * 2 - 1
    return _cast(numbers, element_type)


def _counting(element_type: ElementType, count: int) -> np.ndarray:
    """0, 1, 2 …, from 0 again where the type cannot count on."""
    numbers = np.arange(count)
    if element_type.kind == "float":
        numbers %= 2 << ml_dtypes.finfo(element_type.dtype).nmant
    elif element_type.kind == "boolean":
        numbers %= 2
    elif element_type.is_integer and element_type.bits < 64:
        numbers %= _most(element_type) + 1
    return _cast(numbers, element_type)


def _most(element_type: ElementType) -> int:
    """The greatest value of an integer type."""
    return (1 << (element_type.bits - (element_type.kind == "int"))) - 1


def _cast(numbers: Any, element_type: ElementType) -> np.ndarray:
    if element_type.kind == "string":
        return np.asarray(numbers).astype(np.str_)
    return np.asarray(numbers).astype(element_type.dtype)
