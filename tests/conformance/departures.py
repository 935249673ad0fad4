"""The departures of OpenVINO, irrun/departures, as cases of the conformance suite."""

from __future__ import annotations

import re
from collections.abc import Iterator

import irrun
from conformance.rows import declaration, name_of, result_types
from departure_calls import feeds, want
from irrun.conformance.suite import Case, Step, tensor_record
from irrun.departures import Departure, Either, Outcome, Tensor, departures
from irrun.opdef import resolve
from irrun.types import PartialShape

__all__ = ["cases"]


def cases() -> Iterator[Case]:
    """Yield a case for each departure.

    Where the specification gives no answer, and where irrun follows OpenVINO against it, the verdict is open.
    """
    for departure in departures():
        xml, weights = departure.model.read_text("utf-8"), departure.model.with_suffix(".bin")
        operation, steps = _operation(xml, departure.operation), list(_steps(departure, result_types(xml)[0]))
        verdict = _verdict(departure)
        yield Case(
            f"{operation}/departure/{departure.name}", operation,
            declaration([shape for _, shape in _inputs(departure)]), verdict,
            f"by hand in irrun/departures/{departure.name}.toml, from the specification", xml,
            weights.read_bytes() if weights.exists() else b"", note=departure.case,
            rtol=1e-6 if verdict == "values" else 0.0,
            types=sorted({record["type"] for step in steps for record in [*step.inputs, *step.outputs]}), steps=steps,
            observed={"OpenVINO 2026.4.1": _observed(departure)},
        )  # fmt: skip


def _verdict(departure: Departure) -> str:
    if departure.shown.irrun is Outcome.REFUSES:
        return "refuse"
    return "open" if departure.status == "open" or departure.is_followed else "values"


def _steps(departure: Departure, type: str) -> Iterator[Step]:
    types = [type for type, _ in _inputs(departure)]
    for arrays, call in zip(feeds(departure), departure.calls, strict=True):
        expected = [call.irrun] if isinstance(call.irrun, Tensor) and _verdict(departure) == "values" else []
        yield Step(
            [tensor_record(array, type) for array, type in zip(arrays, types)],
            [tensor_record(want(tensor, departure), type) for tensor in expected],
        )


_OBSERVED = {
    Outcome.SAME: "what irrun gives, though the specification says otherwise",
    Outcome.REFUSES: "an error",
    Outcome.CRASHES: "the process dies",
    Outcome.UNDEFINED: "reads or writes where it should not: not asked",
}


def _observed(departure: Departure) -> str:
    expected = departure.shown.openvino
    if isinstance(expected, Outcome):
        return _OBSERVED[expected]
    outputs = expected.outputs if isinstance(expected, Either) else (expected,)
    return " or ".join(str(tensor.array().tolist()) for tensor in outputs)


def _operation(xml: str, type: str) -> str:
    """Return the version of the operation that a model is about."""
    for layer in re.findall(r"<layer [^>]*>", xml):
        if re.search(rf'type="{type}"', layer, re.IGNORECASE):
            opset = re.search(r'version="opset(\d+)"', layer)
            cls = resolve(type, int(opset[1]) if opset else 1)
            assert cls is not None
            return name_of(cls)
    raise AssertionError(f"no {type} in the model")


def _inputs(departure: Departure) -> list[tuple[str, PartialShape]]:
    """Return the element type and shape of each Parameter of a departure's model."""
    ports = [layer.outputs[0] for layer in irrun.read_model(departure.model).parameters]
    return [(port.type.name if port.type else "dynamic", port.shape or PartialShape(None)) for port in ports]
