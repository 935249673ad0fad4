"""Sweeps: models of each operation in which one thing changes, or two.

An element type, the rank or the dims of an input, whether an input is constant, the type or the rank of a constant, or
the text of an attribute.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from irrun.conformance.suite import Case
from irrun.inference.bind import versions_of
from irrun.opdef import Attribute, Op, all_ops
from irrun.types import ELEMENT_TYPES, ElementType

__all__ = ["sweep"]

_FAULTS: Final = ("", "tru", "-1", "0", "2")
"""Texts that are written into each attribute in turn."""
_BASES: Final = 3
"""The most cases of an operation that are changed."""
_PAIRS: Final = 12
"""The most pairs of changes of a case."""
_RANKS: Final = range(8)
_INPUT: Final = r'(type="Parameter"[^>]*>\s*<data element_type="\w+" )shape="({})"'
"""A Parameter with a shape, which is put in for the braces."""
_CONSTANT: Final = (
    r'<layer [^>]*type="Const"[^>]*>\s*<data element_type="(?P<type>\w+)" shape="(?P<shape>[^"]*)" '
    r'offset="(?P<offset>\d+)" size="(?P<size>\d+)".*?</layer>'
)
"""A Const."""
_INTEGERS: Final = ("i16", "i32", "i64", "u8", "u32", "u64")
"""The types that a constant of integers gets in turn."""
_BYTE: Final = 8
"""The fewest bits of the constants that change: numbers of fewer bits share bytes."""


def sweep(cases: Iterable[Case], rng: random.Random) -> Iterator[Case]:
    """Yield models: for each operation, a few random cases, each change of them, and some pairs of changes.

    An element type changes in all ports that have it, and a shape in all inputs of the model that have it. An input
    becomes constant, or a constant an input. A constant of integers has another type or rank. An attribute is left out,
    gets a faulty text or number, and each of its words if it is a choice.
    """
    of: dict[str, list[Case]] = {}
    for case in cases:
        if "<body>" not in case.xml:
            of.setdefault(case.operation, []).append(case)
    for cls in all_ops():
        found = of.get(f"{cls.type}-{cls.since}", [])
        if not versions_of(cls):
            continue
        for case in rng.sample(found, min(_BASES, len(found))):
            changed = [*_changes(case, cls)]
            yield from changed
            seen = {case.xml, *(once.xml for once in changed)}
            for once in rng.sample(changed, min(_PAIRS, len(changed))):
                if twice := [two for two in _changes(once, cls) if two.xml not in seen]:
                    yield (two := rng.choice(twice))
                    seen.add(two.xml)


def _changes(case: Case, cls: type[Op]) -> Iterator[Case]:
    """Yield a model with each change of one thing."""
    yield from (replace(case, xml=xml) for xml in _types(case.xml))
    yield from (replace(case, xml=xml) for xml in _shapes(case.xml))
    yield from _constants(case)
    yield from _retyped(case)
    for name, attribute in cls.attributes.items():
        yield from (replace(case, xml=xml) for xml in _texts(case.xml, cls.type, attribute.name or name, attribute))


def _types(xml: str) -> Iterator[str]:
    """Yield a model with each other element type in place of one that no constant has."""
    constants = re.findall(r'<layer [^>]*type="Const".*?</layer>', xml, re.DOTALL)
    stored = {type for text in constants for type in re.findall(r'element_type="(\w+)"', text)}
    for type in sorted(set(re.findall(r'element_type="(\w+)"', xml)) - stored):
        old = ELEMENT_TYPES.get(type)
        for new in ELEMENT_TYPES.values():
            if old is not None and new is not old:
                changed = re.sub(rf'(\w*type)="{old}"', rf'\1="{new}"', xml)
                yield changed.replace(f'precision="{old.port_name}"', f'precision="{new.port_name}"')


def _shapes(xml: str) -> Iterator[str]:
    """Yield a model with other shapes of its inputs: other ranks, unknown dims, an unknown rank, a dim of 0 or 1.

    One input alone gets a dim less or more, none, or its dims in reverse. Only the attribute of each Parameter changes:
    OpenVINO takes the shapes of all ports from there.
    """
    for old in sorted({shape for _, shape in re.findall(_INPUT.format('[^"]*'), xml)}):
        dims = re.findall(r"[^,\s]+", old)
        ranks = [[*dims, *["2"] * len(_RANKS)][:rank] for rank in _RANKS]
        holes = [[*dims[:at], hole, *dims[at + 1 :]] for at in range(len(dims)) for hole in ("?", "0", "1")]
        unknown = [["?"] * rank for rank in _RANKS]
        for new in dict.fromkeys(map(",".join, (*ranks, *unknown, ["..."], *holes))):
            if new != ",".join(dims):
                yield re.sub(_INPUT.format(re.escape(old)), rf'\1shape="{new}"', xml)
    inputs = [*re.finditer(_INPUT.format('([^"]*)'), xml)]
    for input in inputs if len(inputs) > 1 else ():
        dims = re.findall(r"[^,\s]+", input[2])
        for new in dict.fromkeys(map(",".join, ([], dims[1:], ["1", *dims], ["2", *dims], dims[::-1]))):
            if new != ",".join(dims):
                yield f"{xml[: input.start(2)]}{new}{xml[input.end(2) :]}"


def _constants(case: Case) -> Iterator[Case]:
    """Yield a model in which one input is constant, with the contents that the case has for it, or a constant is an
    input.
    """
    feeds = case.steps[0].feeds() if case.steps else []
    inputs = [*re.finditer(r'type="Parameter"([^>]*>\s*<data element_type="\w+" shape="[^"]*")', case.xml)]
    for input, array in zip(inputs, feeds):
        if not array.dtype.hasobject and array.dtype.itemsize * 8 == _bits(input[0]):
            data = np.ascontiguousarray(array).tobytes()
            text = f'type="Const"{input[1]} offset="{len(case.bin)}" size="{len(data)}"'
            xml = case.xml[: input.start()] + text + case.xml[input.end() :]
            yield replace(case, xml=xml, bin=case.bin + data)
    for constant in re.finditer(r'type="Const"([^>]*>\s*<data .*?) offset="\d+" size="\d+"', case.xml):
        yield replace(
            case, xml=f'{case.xml[: constant.start()]}type="Parameter"{constant[1]}{case.xml[constant.end() :]}'
        )


def _retyped(case: Case) -> Iterator[Case]:
    """Yield a model in which one constant of integers has another type, or another rank, and the same numbers.

    A scalar also becomes a list of two.
    """
    for layer in re.finditer(_CONSTANT, case.xml, re.DOTALL):
        old, dims = ELEMENT_TYPES.get(layer["type"]), [dim for dim in layer["shape"].split(",") if dim.strip()]
        data = case.bin[int(layer["offset"]) :][: int(layer["size"])]
        if old is None or old.kind not in ("int", "uint") or old.bits < _BYTE or len(data) % old.dtype.itemsize:
            continue
        numbers = np.frombuffer(data, old.dtype)
        for new in _INTEGERS:
            if new != old.name:
                yield _with_constant(case, layer, ELEMENT_TYPES[new], numbers, dims)
        for other in (["1", *dims], dims[1:] if dims[:1] == ["1"] else dims):
            if other != dims:
                yield _with_constant(case, layer, old, numbers, other)
        if not dims:
            yield _with_constant(case, layer, old, np.repeat(numbers, 2), ["2"])


def _with_constant(
    case: Case, layer: re.Match[str], type: ElementType, numbers: np.ndarray, dims: Sequence[str]
) -> Case:
    """Return a model in which a Const has other contents, written behind those of all others."""
    data = numbers.astype(type.dtype).tobytes()
    written = f'element_type="{type}" shape="{",".join(dims)}" offset="{len(case.bin)}" size="{len(data)}"'
    ports = "".join(f"<dim>{dim}</dim>" for dim in dims)
    text = re.sub(r"element_type=.*?(?=/?>)", written, layer[0], count=1, flags=re.DOTALL)
    text = re.sub(
        r'(<port [^>]*precision=")\w+("[^>]*?)/?>.*?(?=</output>)',
        rf"\1{type.port_name}\2>{ports}</port>",
        text,
        flags=re.DOTALL,
    )
    return replace(case, xml=case.xml[: layer.start()] + text + case.xml[layer.end() :], bin=case.bin + data)


def _bits(layer: str) -> int:
    type = ELEMENT_TYPES.get(re.search(r'element_type="(\w+)"', layer)[1])  # type: ignore[index]
    return 0 if type is None else type.bits


def _texts(xml: str, type: str, name: str, attribute: Attribute) -> Iterator[str]:
    """Yield a model without an attribute, and with others of its texts."""
    data = re.search(rf'<layer [^>]*type="{type}"[^>]*>\s*<data', xml)
    if data is None:
        return
    end = xml.index(">", data.end())
    written = re.compile(rf' {re.escape(name)}="([^"]*)"').search(xml, data.end(), end)
    if written is None:
        place, value = slice(data.end(), data.end()), ""
    else:
        place, value = slice(*written.span()), written[1]
        yield xml[: place.start] + xml[place.stop :]
    is_number = re.fullmatch(r"-?[\d., ]+", value) is not None
    for text in (*_FAULTS, *attribute.words):
        if text != value and (is_number or not text.lstrip("-").isdecimal()):
            yield f'{xml[: place.start]} {name}="{text}"{xml[place.stop :]}'
