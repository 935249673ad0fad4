"""What each verdict of the suite rests on: a sentence of the operation's page. Without one, a case is open.

``settled`` gives a case its sentence, or makes it open. ``faults`` holds a whole suite against the pages: the export
refuses a suite with any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

import irrun
from irrun.base.source import Source
from irrun.conformance.suite import DECLARATIONS, Case, Suite
from irrun.departures import departures
from irrun.ir.parse import parse
from irrun.model.weights import Weights
from irrun.opdef import Op, resolve
from irrun.ops._elementwise import Elementwise
from irrun.ops._unary import Unary
from irrun.planning.steps import Step
from irrun.specification import Wording, wording
from irrun.specification.undefined import shown
from irrun.types import type_set

__all__ = ["LEAST", "faults", "settled", "undefined"]

LEAST: Final = {"f16": 1e-3, "bf16": 8e-3, "f8e4m3": 0.07, "f8e5m2": 0.13, "f32": 1e-6, "f64": 1e-6}
"""The least tolerance of a computed value, relative to the largest element of its output: what the arithmetic of the
type gives when engines add up in another order. Engines compute f64 as f32."""
EXACT: Final = frozenset({
    "BatchToSpace", "Broadcast", "Bucketize", "Concat", "DepthToSpace", "ExtractImagePatches", "Gather",
    "GatherElements", "GatherND", "Identity", "MaxPool", "Maximum", "Minimum", "NonZero", "OneHot", "Pad", "PriorBox",
    "ReduceMax", "ReduceMin", "ReLU", "ReorgYolo", "Reshape", "Reverse", "ReverseSequence", "Roll", "ScatterNDUpdate",
    "ScatterUpdate", "Select", "ShapeOf", "ShuffleChannels", "Slice", "SliceScatter", "SpaceToBatch", "SpaceToDepth",
    "Split", "Squeeze", "StridedSlice", "Tile", "TopK", "Transpose", "Unique", "Unsqueeze", "VariadicSplit",
})  # fmt: skip
"""Operations that move or choose elements, and round none."""


def settled(case: Case) -> Case:
    """Return a case with the sentence that its verdict rests on, or as an open one with what leaves it open.

    Its absolute tolerance becomes at least what the arithmetic of its types can give.
    """
    page = wording(case.operation)
    case = replace(case, basis="engine" if case.source.startswith("OpenVINO") else "page")
    if page is None or case.verdict == "open":
        return case
    if case.verdict == "values" and (behaviour := undefined(case, page)):
        return _opened(case, page.undefined[behaviour], behaviour)
    beyond = _beyond(case, page) if case.verdict == "values" or case.clause == "IR301" else set()
    if case.verdict == "values" and beyond:
        return _opened(case, "", f"no sentence of the page allows {', '.join(sorted(beyond))}")
    if case.verdict == "values" and (reason := page.silent.get(_row(case))):
        return _opened(case, "", reason)
    if case.clause == "IR301" and not beyond:
        return _opened(case, "", "the page allows these types")
    if sentence := _sentence(case, page):
        least = _least(case) if case.verdict == "values" else 0.0
        return replace(case, sentence=sentence, atol=max(case.atol, float(f"{least:.1e}")))
    reason = page.silent.get(_row(case)) or page.silent.get(case.clause) or "the page has no sentence about it"
    return _opened(case, "", reason)


def _opened(case: Case, sentence: str, note: str) -> Case:
    steps = [replace(step, outputs=(), seen=step.outputs) for step in case.steps]
    return replace(case, verdict="open", sentence=sentence, note=case.note or note, clause="", steps=steps)


def _class(case: Case) -> type[Op]:
    type, since = case.operation.rsplit("-", 1)
    cls = resolve(type, int(since))
    assert cls is not None
    return cls


def _row(case: Case) -> str:
    """Return the row of a table that a case was made from."""
    if origin := re.search(r"carried over from (.+)$", case.source):
        return origin[1]
    parts = case.name.split("/")[2:]
    id = "/".join(parts[:-1] if parts[-1].removesuffix("-fed") in DECLARATIONS else parts)
    return id.split("~")[0]


def _sentence(case: Case, page: Wording) -> str:
    """Return the sentence that a verdict rests on, or an empty text."""
    if "/departure/" in case.name:
        return _departures().get(case.name.split("/")[2], "")
    if case.verdict == "values":
        return page.rows.get(_row(case)) or " … ".join([page.values, *_broadcasting(case, page)])
    if _row(case) in page.silent:
        return ""
    if case.clause == "IR301":
        return " … ".join(types.says for types in page.types.values())
    return " … ".join(page.clauses.get(case.clause, ()))


def _broadcasting(case: Case, page: Wording) -> list[str]:
    """Return the sentence of the page about the broadcasting of PaddlePaddle, if a case broadcasts so."""
    if 'auto_broadcast="pdpd"' not in case.xml:
        return []
    return [sentence for sentence in page.sentences() if sentence.startswith("*pdpd*")][:1]


@cache
def _departures() -> dict[str, str]:
    return {departure.name: departure.sentence for departure in departures()}


# ---------------------------------------------------------------------------------------------
# behaviours that a page leaves open


class _Calls:
    """A hook that keeps the inputs of the layers of one version of an operation."""

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.found: list[tuple[Op, Sequence[np.ndarray | None]]] = []

    def before(self, step: Step, inputs: Sequence[np.ndarray | None]) -> None:
        if type(step.op) is self.cls:
            self.found.append((step.op, inputs))

    def after(self, step: Step, inputs: Sequence[Any], outputs: Sequence[np.ndarray]) -> None:
        pass


def undefined(case: Case, page: Wording) -> str:
    """Return the name of a behaviour that the page leaves open and that a case asks for, or an empty text."""
    if not page.undefined:
        return ""
    calls = _Calls(_class(case))
    model = parse(Source("model.xml", case.xml.encode()), Weights(data=case.bin)).runnable()
    executable = irrun.compile(model, exact=True)
    for step in case.steps:
        if step.reset:
            executable.reset_state()
        executable(step.feeds(), hooks=[calls])
    for behaviour in page.undefined:
        if any(mask.any() for op, inputs in calls.found for mask in shown(op, inputs, behaviour, 1)):
            return behaviour
    return ""


# ---------------------------------------------------------------------------------------------
# the whole suite


def faults(suite: Suite) -> Iterator[str]:
    """Yield what is wrong with the verdicts of a suite, each with the name of its case."""
    for case in suite.cases:
        page = wording(case.operation)
        if page is None:
            yield f"{case.name}: no file quotes the page of {case.operation}"
        else:
            yield from (f"{case.name}: {fault}" for fault in _faults(case, page))


def _faults(case: Case, page: Wording) -> Iterator[str]:
    if case.verdict == "open":
        if any(step.outputs for step in case.steps):
            yield "an open case has expected values"
        return
    if not case.sentence:
        yield f"no sentence of the page says what is to {'refuse' if case.verdict == 'refuse' else 'come out'}"
    elif not set(case.sentence.split(" … ")) <= _quoted(case, page):
        yield f"the page's file has no sentence {case.sentence!r}"
    if _row(case) in page.silent:
        yield f"the page is silent about the row {_row(case)}"
    if case.verdict == "refuse":
        yield from _clause_faults(case, page)
        return
    if beyond := _beyond(case, page):
        yield f"the page does not allow {', '.join(sorted(beyond))}"
    elif behaviour := undefined(case, page):
        yield f"it has expected values, but the page leaves open: {behaviour}"
    yield from _tolerance_faults(case)


def _quoted(case: Case, page: Wording) -> set[str]:
    """Return the parts of all sentences that a verdict may rest on."""
    sentences = [*page.sentences(), _departures().get(case.name.split("/")[2], "")]
    return {part for sentence in sentences for part in sentence.split(" … ")}


def _clause_faults(case: Case, page: Wording) -> Iterator[str]:
    if case.clause == "IR301":
        if not _beyond(case, page):
            yield "the page allows the types of all inputs"
    elif case.clause and case.clause not in page.clauses:
        yield f"no sentence of the page says {case.clause}"


def _beyond(case: Case, page: Wording) -> set[str]:
    """Return the element types of inputs of the operation that the page does not allow there."""
    model = parse(Source("model.xml", case.xml.encode()), Weights(data=case.bin)).model
    cls, beyond = _class(case), set[str]()
    for layer in model.layers.values():
        if layer.type.lower() != cls.type.lower():
            continue
        for position, port in enumerate(layer.inputs[: len(layer.inputs) if cls.inputs else 0]):
            variable = cls.inputs[min(position, len(cls.inputs) - 1)].type
            types = page.types[variable].types if variable in page.types else variable
            if port.type is not None and port.type not in type_set(types):
                beyond.add(port.type.name)
    return beyond


# ---------------------------------------------------------------------------------------------
# tolerances


def _least(case: Case) -> float:
    """Return the least absolute tolerance of a case: what the arithmetic of its types can give.

    Sums round relative to their largest terms, so a small element is as far off as a large one. Functions of one
    element round relative to themselves, or to 1 where they cross 0.
    """
    cls = _class(case)
    if cls.type in EXACT:
        return 0.0
    least = 0.0
    for step in case.steps:
        for record, array in zip(step.outputs, step.expected()):
            unit = LEAST.get(record["type"], 0.0)
            if unit:
                wide = array.astype(np.float64)
                scale = np.abs(wide[np.isfinite(wide)]).max(initial=0.0)
                least = max(least, unit * (min(scale, 1.0) if issubclass(cls, (Elementwise, Unary)) else scale))
    return least


def _tolerance_faults(case: Case) -> Iterator[str]:
    if case.atol < 0.95 * (least := _least(case)):
        yield f"its absolute tolerance is {case.atol:g}; the arithmetic of its types needs {least:.2g}"
