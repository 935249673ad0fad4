"""Sweeps: a model of each operation in which one thing changes at a time: an element type, or the text of an attribute."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from irrun.conformance.suite import Case
from irrun.inference.bind import versions_of
from irrun.opdef import Attribute, all_ops
from irrun.types import ELEMENT_TYPES

__all__ = ["sweep"]

_FAULTS = ("", "tru", "-1", "0", "2")
"""Texts that are written into each attribute in turn."""


def sweep(cases: Iterable[Case], rng: random.Random) -> Iterator[Case]:
    """Yield models: for each operation, a random case of a run, and each change of it.

    An element type changes in all ports that have it. An attribute is left out, gets a faulty text or number, and each
    of its words if it is a choice.
    """
    of: dict[str, list[Case]] = {}
    for case in cases:
        if case.verdict == "values" and "<body>" not in case.xml:
            of.setdefault(case.operation, []).append(case)
    for cls in all_ops():
        found = of.get(f"{cls.type}-{cls.since}", [])
        if not found or not versions_of(cls):
            continue
        case = rng.choice(found)
        yield from (replace(case, xml=xml) for xml in _types(case.xml))
        data = re.search(rf'<layer [^>]*type="{cls.type}"[^>]*>\s*<data( [^>]*?)/?>', case.xml)
        for written in re.finditer(r' ([\w.]+)="([^"]*)"', data[1]) if data else ():
            attribute = next((a for a in cls.attributes.values() if a.name == written[1]), None)
            for text in _texts(written[1], written[2], attribute):
                start, end = data.start(1) + written.start(), data.start(1) + written.end()  # type: ignore[union-attr]
                yield replace(case, xml=case.xml[:start] + text + case.xml[end:])


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


def _texts(name: str, value: str, attribute: Attribute | None) -> Iterator[str]:
    """Yield what to write in place of an attribute and the blank before it."""
    yield ""
    is_number = re.fullmatch(r"-?[\d., ]+", value) is not None
    for text in (*_FAULTS, *(attribute.words if attribute else ())):
        if text != value and (is_number or not text.lstrip("-").isdecimal()):
            yield f' {name}="{text}"'
