"""Which operation each release reads from which operation set: a tiny model for each pair, and the reader's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from irrun.inference.bind import LATEST_OPSET
from irrun.opdef import all_ops

__all__ = ["internal_operations", "models", "operation_sets"]

_MODEL = """<net name="net" version="11">
<layers>
<layer id="0" name="layer" type="{type}" version="opset{opset}"><data/><output><port id="0" precision="FP32"/></output></layer>
<layer id="1" name="result" type="Result" version="opset1"><input><port id="0" precision="FP32"/></input></layer>
</layers>
<!--{padding}-->
<edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>
</net>
"""
_ABSENT = ("unsupported opset", "doesn't contain the operation", "has undefined element type")
"""What messages of a reader say of an operation that an operation set lacks, or before the reader looks for it. Any
other error comes from the attributes of the operation."""
_VAGUE = "Converting input model"
"""All that the reader of 2022.2 says of most faults."""


def models(folder: Path) -> dict[tuple[str, int], Path]:
    """Write a model of each operation of irrun in each operation set to a folder, and return their paths."""
    paths: dict[tuple[str, int], Path] = {}
    for type in sorted({cls.type for cls in all_ops()}):
        for opset in range(1, LATEST_OPSET + 1):
            path = paths[type, opset] = folder / f"{type}-{opset}.xml"
            path.write_text(_MODEL.format(type=type, opset=opset, padding="x" * 512))
    return paths


def operation_sets(
    answers: Mapping[str, Mapping[tuple[str, int], Sequence[str]]],
) -> tuple[dict[str, int], dict[str, list[Any]]]:
    """Return ``opsets`` and ``operations`` of the table, from the answers of each release, the oldest first."""
    has = {release: {pair for pair, answer in of.items() if _is_read(answer)} for release, of in answers.items()}
    # an operation set counts as whole when it has Abs, which each has
    opsets = {release: max(opset for type, opset in pairs if type == "Abs") for release, pairs in has.items()}
    order = list(answers)
    for release, later in pairwise(order):
        vague = {pair for pair, (_, message) in answers[release].items() if message.endswith(_VAGUE)}
        has[release] |= {(type, opset) for type, opset in vague & has[later] if opset <= opsets[release]}
    first: dict[tuple[str, int], str] = {}
    for release, pairs in has.items():
        for pair in pairs:
            first.setdefault(pair, release)
    pairs = next(iter(answers.values())).keys()
    known = {type for type, _ in first}
    operations: dict[str, list[Any]] = {}
    for type, opset in sorted(pairs):
        usual = next((r for r in answers if opsets[r] >= opset), None)
        found = first.get((type, opset))
        if found == usual or (type not in known and opset > 1):
            continue
        rows = operations.setdefault(type, [])
        if type not in known:
            rows.append([1, LATEST_OPSET, None])
        elif rows and rows[-1][1] == opset - 1 and rows[-1][2] == found:
            rows[-1][1] = opset
        else:
            rows.append([opset, opset, found])
    return opsets, operations


def internal_operations(
    types: Sequence[set[str]], answers: Mapping[str, Sequence[Sequence[str] | None]]
) -> dict[str, str]:
    """Return ``internal`` of the table: the first release that reads each operation of no numbered operation set.

    ``types`` has the types of such operations in each model, and ``answers`` what each release said of the models. A
    release reads an operation if a model passes its reader, or if the message is about the operation itself.
    """
    first: dict[str, str] = {}
    for release, of in answers.items():
        for inside, answer in zip(types, of):
            if len(inside) != 1 or answer is None:
                continue
            (type,) = inside
            stage, message = answer
            if stage in ("", "compile") or (type in message and _is_read(answer)):
                first.setdefault(type, release)
    return first


def _is_read(answer: Sequence[str]) -> bool:
    _, message = answer
    return not any(word in message for word in _ABSENT) and not message.endswith(_VAGUE)
