"""Drafts of layers: the texts of attributes, and the element types, shapes and contents of inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from irrun.diagnostics import IrrunError, Refused
from irrun.inference.layer import infer, input_at
from irrun.opdef import Op, Site, Value, all_ops, is_custom
from irrun.types import ELEMENT_TYPES, ElementType, PartialShape, text_array

__all__ = [
    "MAX_DIM", "MAX_ELEMENTS", "STRUCTURE", "Draft", "Port", "Unparsable", "add_host", "failure", "integers_in",
    "is_setting", "name_of", "random_contents", "setting_range", "substitute", "versions",
]  # fmt: skip

STRUCTURE: Final = ("Parameter", "Const", "Result", "If", "Loop", "TensorIterator", "ReadValue", "Assign")
"""Types of layers that the graph itself makes."""

MAX_DIM: Final = 64
"""The largest dim of an input."""
MAX_ELEMENTS: Final = 1 << 12
"""The most elements of a tensor, so that a graph runs within milliseconds."""
_MAX_SPAN: Final = 1 << 40
"""The largest product of the dims of an input without those that are 0: numpy makes no empty array beyond 2**63."""
_MAX_KERNEL_BYTES: Final = 1 << 22
"""The most bytes that a kernel may take for itself."""
_MAX_SETTING: Final = 60
"""The largest number in a setting: as a length, it must not make a tensor too large."""
_MAX_COUNTED_DIMS: Final = 8
"""The most numbers of an attribute that changes of a draft look at."""


@cache
def versions() -> dict[str, type[Op]]:
    """Return all versions of operations of the specification by name (``Tile-1``)."""
    return {name_of(cls): cls for cls in all_ops() if not is_custom(cls)}


def name_of(cls: type[Op]) -> str:
    return f"{cls.type}-{cls.since}"


@dataclass
class Port:
    """An input of a draft. ``data`` holds the contents of a setting: a constant such as a list of axes."""

    type: str
    shape: tuple[int, ...]
    data: np.ndarray | None = None
    fixed: bool = False
    """Whether the input is a tensor that is there already."""
    domain: str = ""
    """Which contents are drawn if ``data`` is None: ``positive`` numbers, ``whole`` ones (0 and 1), or any."""

    def copy(self) -> Port:
        return Port(self.type, self.shape, self.data, self.fixed, self.domain)

    def value(self) -> Value:
        return Value(ELEMENT_TYPES[self.type], PartialShape.of(self.shape), self.data)


@dataclass
class Draft:
    """A layer: the texts of its attributes, its inputs, and the number of its outputs."""

    cls: type[Op]
    attributes: dict[str, str] = field(default_factory=dict)
    ports: list[Port] = field(default_factory=list)
    outputs: int = 1

    def copy(self) -> Draft:
        """Return a draft that can be changed on its own. Arrays are shared: a change replaces them."""
        return Draft(self.cls, dict(self.attributes), [port.copy() for port in self.ports], self.outputs)

    def op(self) -> Op:
        """Return the operation with its parsed attributes. Raises Unparsable if a text cannot be parsed."""
        parsed: dict[str, Any] = {}
        for key, attribute in self.cls.attributes.items():
            text = self.attributes.get(attribute.name)
            if text is not None:
                try:
                    parsed[key] = attribute.parse(text)
                except (ValueError, OverflowError):
                    raise Unparsable(attribute.name) from None
        return self.cls(**parsed)

    def numbers(self) -> list[int]:
        """Return the numbers that the draft consists of."""
        found = [dim for port in self.ports for dim in port.shape]
        found += [len(port.shape) for port in self.ports]
        for text in self.attributes.values():
            found += integers_in(text)[:_MAX_COUNTED_DIMS]
        return found


class Unparsable(Exception):  # noqa: N818
    """An attribute, by its name, has a text that cannot be parsed."""


def failure(draft: Draft) -> str:
    """Return why a layer that the shape rule accepts does not run with random inputs; an empty text if it runs.

    A kernel that fails with an exception of its own counts as one that runs: the judge shall see it.
    """
    op, numbers = draft.op(), np.random.default_rng(1)
    if any(prod(dim or 1 for dim in port.shape) > _MAX_SPAN for port in draft.ports):
        return "too large"
    arrays = [random_contents(port, numbers) for port in draft.ports]
    values = [
        Value(ELEMENT_TYPES[port.type], PartialShape.of(port.shape), array) for port, array in zip(draft.ports, arrays)
    ]
    try:
        with np.errstate(all="ignore"):
            inferred = infer(op, Site(draft.outputs), values, dict.fromkeys(draft.cls.needs), contents=False)
            if _is_large([value.shape.static or () for value in inferred]) or op.working(*arrays) > _MAX_KERNEL_BYTES:
                return "too large"
            results = op.run(*arrays)
    except (Refused, IrrunError) as error:
        return str(error)
    except Exception:
        return ""
    shapes = [np.shape(result) for result in (results if isinstance(results, tuple) else (results,))]
    return "too large" if _is_large(shapes) else ""


def _is_large(shapes: Sequence[Sequence[int]]) -> bool:
    """Return whether one of the shapes has too many elements. A dim of 0 counts as 1: numpy strides over the others."""
    return max((prod(dim or 1 for dim in shape) for shape in shapes), default=0) > MAX_ELEMENTS


def setting_range(type: ElementType) -> tuple[int, int]:
    """Return the least and the largest number that settings of an element type get."""
    return 0 if type.kind == "uint" else -3, min(_MAX_SETTING, (1 << type.bits - (type.kind == "int")) - 1)


def integers_in(text: str) -> tuple[int, ...]:
    return tuple([int(number) for number in _NUMBER.findall(text)])


_NUMBER: Final = re.compile(r"-?\d+")


def is_setting(cls: type[Op], position: int, type: str) -> bool:
    """Return whether an input is a constant in most models: integers of another type variable than the first input."""
    port = input_at(cls.inputs, position)
    kind = ELEMENT_TYPES[type].kind
    if port is None or kind not in ("int", "uint", "boolean"):
        return False
    return position > 0 and port.type != cls.inputs[0].type


def add_host(draft: Draft, host: Port | None) -> Draft:
    """Return a draft with another first input, and with the other dims changed accordingly."""
    if host is None or not draft.ports:
        return draft
    old = draft.ports[0]
    if len(old.shape) == len(host.shape):
        substitute(draft, dict(zip(old.shape, host.shape)), whole=False)
    cls = draft.cls
    for position, port in enumerate(draft.ports):
        declared = input_at(cls.inputs, position)
        if declared is not None and declared.type == cls.inputs[0].type and declared.type in cls.types:
            port.type = host.type
            port.data = None
    draft.ports[0] = host.copy()
    return draft


def substitute(draft: Draft, numbers: dict[int, int], *, whole: bool) -> None:
    """Replace dims everywhere in the inputs that are not fixed; ``whole`` also in attributes and contents."""
    for port in draft.ports:
        if port.fixed:
            continue
        shape = tuple(min(numbers.get(dim, dim), MAX_DIM) for dim in port.shape)
        if prod(shape) > MAX_ELEMENTS:
            continue
        if port.data is not None:
            if whole and ELEMENT_TYPES[port.type].kind in ("int", "uint"):
                port.data = np.array([numbers.get(int(n), int(n)) for n in port.data.ravel()]).astype(
                    port.data.dtype).reshape(port.data.shape)  # fmt: skip
            continue
        port.shape = shape
    if whole:
        for name, text in draft.attributes.items():
            draft.attributes[name] = re.sub(
                r"\b\d+\b", lambda found: str(numbers.get(int(found[0]), int(found[0]))), text
            ) if re.fullmatch(r"[\d,\s-]*", text) else text  # fmt: skip


def random_contents(port: Port, numbers: np.random.Generator, scale: float = 2.0) -> np.ndarray:
    """Return random contents of an input: floats in [-scale, scale), integers from 0 to 3, or those of its domain."""
    if port.data is not None:
        return port.data
    type, shape = ELEMENT_TYPES[port.type], port.shape
    if type.kind == "string":
        words = ["", "a", "hello", "größer", "x" * 20]
        count = prod(shape)
        return text_array([words[n] for n in numbers.integers(0, len(words), count)], shape)
    if type.kind == "boolean":
        return np.asarray(numbers.random(shape) < 0.5)
    if port.domain == "whole":
        return np.asarray(numbers.integers(0, 2, shape)).astype(type.dtype)
    if type.kind == "float":
        low = scale / 8 if port.domain == "positive" else -scale
        return np.asarray(numbers.uniform(low, scale, shape)).astype(type.dtype)
    low = int(port.domain == "positive")
    return np.asarray(numbers.integers(low, min(4, 1 << type.bits), shape)).astype(type.dtype)
