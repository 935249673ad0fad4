"""The departures of OpenVINO, docs/departures.md, as cases of the conformance suite."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

import departures.test_departures as table
import irrun
from conformance.rows import declaration, name_of, result_types
from irrun.conformance.suite import Case, Step, tensor_record
from irrun.opdef import resolve
from irrun.types import PartialShape

__all__ = ["cases"]

_OPEN = re.compile(r"not defined|leaves open|undefined|does not say")
"""What the page says of a case for which the specification has no answer."""


def cases() -> Iterator[Case]:
    """Yield a case for each row.

    Where the specification gives no answer, and where irrun follows OpenVINO against it, the verdict is open.
    """
    page = dict(_page())
    for row in table.ROWS:
        type, text = page[row.model]
        xml, weights = row.path.read_text("utf-8"), row.path.with_suffix(".bin")
        operation = _operation(xml, type)
        verdict = "open" if row.openvino is table.SAME or _OPEN.search(text) else "values"
        expected = []
        if row.irrun is table.REFUSES:
            verdict = "refuse"
        elif verdict == "values":
            expected = [*([] if row.before is None else [row.before[1]]), row.irrun]
        types = [type for type, _ in _inputs(row)]
        steps = [
            Step(
                [tensor_record(array, type) for array, type in zip(arrays, types)],
                [tensor_record(np.asarray(want), result_types(xml)[0]) for want in expected[number : number + 1]],
            )
            for number, arrays in enumerate(row.inferences())
        ]
        yield Case(
            f"{operation}/departure/{row.model}", operation, declaration([shape for _, shape in _inputs(row)]), verdict,
            "by hand in tests/departures/test_departures.py, from the specification", xml,
            weights.read_bytes() if weights.exists() else b"", note=text, rtol=1e-6 if verdict == "values" else 0.0,
            types=sorted({record["type"] for step in steps for record in [*step.inputs, *step.outputs]}), steps=steps,
            observed={"OpenVINO 2026.4.1": _observed(row)},
        )  # fmt: skip


def _page() -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the name of each model on the page, with its operation and the text of its case."""
    for line in table.PAGE.read_text("utf-8").splitlines():
        if match := re.match(r"\| \[(\w+)\]\(departures/(\w+)\.xml\) \| (.*?) \|", line):
            yield match[2], (match[1], match[3])


def _observed(row: table.Row) -> str:
    if isinstance(row.openvino, table.Outcome):
        return row.openvino.value
    outputs = row.openvino.outputs if isinstance(row.openvino, table.ByProcessor) else (row.openvino,)
    return " or ".join(str(np.asarray(output).tolist()) for output in outputs)


def _operation(xml: str, type: str) -> str:
    """Return the version of the operation that a model is about."""
    for layer in re.findall(r"<layer [^>]*>", xml):
        if re.search(rf'type="{type}"', layer, re.IGNORECASE):
            opset = re.search(r'version="opset(\d+)"', layer)
            cls = resolve(type, int(opset[1]) if opset else 1)
            assert cls is not None
            return name_of(cls)
    raise AssertionError(f"no {type} in the model")


def _inputs(row: table.Row) -> list[tuple[str, PartialShape]]:
    """Return the element type and shape of each Parameter of a row's model."""
    ports = [layer.outputs[0] for layer in irrun.read_model(row.path).parameters]
    return [(port.type.name if port.type else "dynamic", port.shape or PartialShape(None)) for port in ports]
