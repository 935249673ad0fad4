"""The result of a comparison, as dataclasses and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from irrun.base.text import table
from irrun.debug.difference.content import Content
from irrun.debug.metrics import Budget, Measurement
from irrun.debug.pairing import InputPair
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import Failure

__all__ = [
    "Comparison",
    "Conduct",
    "First",
    "InputError",
    "Layer",
    "SideFailure",
    "Step",
    "Storage",
    "Verdict",
    "input_records",
    "json_number",
    "layer_record",
    "nothing_to_compare",
    "record",
    "verdict",
]

Verdict = Literal["agree", "differ", "refused", "crashed", "timeout"]

VERDICTS: Final[Mapping[str, Verdict]] = {"Refusal": "refused", "Crash": "crashed", "Timeout": "timeout"}


@dataclass(frozen=True, slots=True)
class Layer:
    """A value that was compared: an output of a layer, or an output of the model.

    ``measurement`` is the worst of all samples, and of all iterations if the layer belongs to the body of a loop;
    ``sample`` and ``iteration`` say which. An iteration is None outside of loops.
    """

    name: str
    """The name of the layer, or of the output of the model."""
    type: str
    """The type of the layer, or an empty text for an output of the model."""
    port: int
    """The id of the port or, without an IR file, the position among the layer's outputs."""
    is_first: bool
    """Whether the port is the layer's first output."""
    file: str | None
    line: int | None
    candidate: str
    """The name in the candidate, which may be another one."""
    element_type: str
    """The element type whose tolerance applies: of the two sides', the one with the wider tolerance."""
    rtol: float
    atol: float
    measurement: Measurement
    sample: int
    iteration: int | None
    budget: Budget | None = None
    """The worst error beside what the precision explains: for a layer its own error, on equal inputs. None if a
    tolerance decides."""

    @property
    def label(self) -> str:
        """The name by which users refer to the value: with the id of the port, unless it is the first."""
        return self.name if self.is_first else f"{self.name}:{self.port}"

    @property
    def agrees(self) -> bool:
        """Whether the value was within its budget or, without one, its tolerance in all samples and iterations."""
        return self.measurement.agrees if self.budget is None else self.budget.is_explained

    @property
    def drifts(self) -> bool:
        """Whether the value is outside its tolerance, although its layer computes rightly: its inputs have errors."""
        return self.agrees and not self.measurement.agrees


@dataclass(frozen=True, slots=True)
class InputError:
    """The error of an input of a layer: its producer, and the measurement, or None if the input was not compared.

    ``kind`` is ``layer``, ``constant``, or ``input`` for an input of the model or of a body.
    """

    name: str
    type: str
    kind: str
    line: int | None
    measurement: Measurement | None


@dataclass(frozen=True, slots=True)
class First:
    """The first divergence: the first value, in the order of the run, that is outside its tolerance.

    ``layer`` holds its figures for the sample and iteration in which it is first outside. ``inputs`` are the errors of
    the layer's inputs. ``gain`` is the error divided by the greatest of those that other layers compute; it is None if
    these have no error, or if shapes differ. ``differences`` say how the two layers differ between the files: in their
    type, their attributes, what they read, and their bodies.
    """

    layer: Layer
    inputs: tuple[InputError, ...]
    gain: float | None
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SideFailure:
    """A side that gave no outputs. ``side`` is ``reference`` or ``candidate``, ``sample`` None if it did not load."""

    side: str
    outcome: Failure
    sample: int | None


@dataclass(frozen=True, slots=True)
class Storage:
    """The constants that the candidate's file stores in another type.

    ``constants`` is their number, ``type`` the type in the candidate's file and ``reference`` that in the reference's.
    ``explained`` is the most by which this moves an element of an output, relative to its root mean square.
    """

    constants: int
    type: str
    reference: str
    explained: float


@dataclass(frozen=True, slots=True)
class Step:
    """A step of two language models that read the same tokens: first the prompt, then one token more in each step.

    ``margin`` is the reference's logit of its own token, less its logit of the candidate's token or, if both choose the
    same, of the next likeliest. ``allowed`` is what the budgets of these two logits explain together. ``error`` and
    ``explained`` are the error of a logit and what explains it, relative to the root mean square of the logits, where
    the error is greatest in relation to that. ``allowed`` and ``explained`` are None without a budget or tolerance.
    Without a detokenizer, the texts of the tokens are empty.
    """

    length: int
    """The number of tokens that both sides have read."""
    reference: int
    """The token that the reference chooses: the one with the greatest logit."""
    candidate: int
    margin: float
    allowed: float | None
    error: float
    explained: float | None
    reference_text: str = ""
    candidate_text: str = ""

    @property
    def agrees(self) -> bool:
        """Whether both sides choose the same token."""
        return self.reference == self.candidate

    @property
    def is_explained(self) -> bool:
        """Whether the errors that are explained suffice to let the candidate choose its token."""
        return self.agrees or (self.allowed is not None and self.margin <= self.allowed)


@dataclass(frozen=True, slots=True)
class Conduct:
    """What is odd about a side that runs the same inputs again.

    ``kind`` is ``not deterministic`` if its outputs change from run to run, ``changes with repetition`` if only the
    first run differs, and ``vanishes when observed`` if no layer is wrong while the side shows its inner values.
    ``layer`` is the first one whose value changes, or an empty text.
    """

    side: str
    kind: Literal["not deterministic", "changes with repetition", "vanishes when observed"]
    layer: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison.

    ``reference`` and ``candidate`` are the sides as text, with the names of their engines. ``outputs`` and ``layers``
    are in the order of the run. ``first`` is None if no layer is outside its tolerance: also if an output is, because
    a fault may vanish when inner values are observed.
    """

    reference: tuple[str, str]
    candidate: tuple[str, str]
    verdict: Verdict
    first: First | None
    outputs: tuple[Layer, ...]
    layers: tuple[Layer, ...]
    samples: int
    failure: SideFailure | None = None
    inputs: tuple[InputPair, ...] = ()
    """The inputs that get the same values."""
    properties: tuple[Mapping[str, str], Mapping[str, str]] = field(default_factory=lambda: ({}, {}))
    """The properties in effect of both engines."""
    processor: str = ""
    """The processor on which both ran."""
    unseen: tuple[tuple[str, str], ...] = ()
    """The layers that were not compared: a side, ``reference`` or ``candidate``, runs the model, but refuses to run it
    while it shows the value of this layer."""
    conduct: Conduct | None = None
    """What is odd about a side, if the sides differ: its verdict may be another one the next time."""
    content: Content | None = None
    """How the files of both sides differ, if the sides agree nevertheless."""
    storage: Storage | None = None
    """The constants that the files store in f16 or bf16 on one side, and in f32 on the other, if budgets decide."""
    steps: tuple[Step, ...] = ()
    """The tokens of language models (see ``compare_tokens``); a sample of each value is then one of these steps."""

    @property
    def agrees(self) -> bool:
        """Whether both sides ran, and all outputs and layers are within their budgets or tolerances."""
        return self.verdict == "agree"

    @property
    def other_token(self) -> tuple[int, Step] | None:
        """The first step in which the language models choose different tokens, and its number from 0; None if none."""
        return next(((number, step) for number, step in enumerate(self.steps) if not step.agrees), None)

    @property
    def drifting(self) -> tuple[Layer, ...]:
        """The layers outside their tolerances whose own errors are explained: they pass on the errors of others."""
        return tuple(layer for layer in self.layers if layer.drifts)

    def _repr_html_(self) -> str:
        """Return the verdict, the outputs and the layers with the greatest errors as a table, for notebooks."""
        worst = sorted((layer for layer in self.layers if not layer.agrees), key=lambda layer: -layer.measurement.error)
        rows = [
            (
                place,
                layer.label,
                layer.type,
                *(_figure(n) for n in (layer.measurement.max_abs, layer.measurement.max_rel)),
            )
            for place, layers in (("output", self.outputs), ("layer", worst[:_MAX_SHOWN]))
            for layer in layers
        ]
        title = (
            self.verdict if self.first is None else f"{self.verdict}: the first divergence is {self.first.layer.label}"
        )
        more = f", {len(worst) - _MAX_SHOWN} more layers differ" if len(worst) > _MAX_SHOWN else ""
        return table(title + more, ("", "name", "type", "max abs", "max rel"), rows)


_MAX_SHOWN: Final = 12
"""The most layers that a notebook shows of a comparison."""


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def record(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a dict for JSON: ``verdict``, ``first``, ``outputs``, ``layers``, ``inputs``.

    A side that failed adds ``failure``. A number that is infinite or not defined is null.
    """
    first = comparison.first
    fields = {
        "verdict": comparison.verdict,
        "first": None if first is None else _first(first),
        "outputs": [layer_record(output, is_output=True) for output in comparison.outputs],
        "layers": [layer_record(layer) for layer in comparison.layers],
        "inputs": input_records(comparison.inputs),
        "properties": dict(zip(("reference", "candidate"), map(dict, comparison.properties))),
        "processor": comparison.processor,
        "unseen": [{"side": side, "layer": layer} for side, layer in comparison.unseen],
        "conduct": None if comparison.conduct is None else asdict(comparison.conduct),
        "content": None if comparison.content is None else asdict(comparison.content),
        "storage": None if comparison.storage is None else asdict(comparison.storage),
        "steps": [_step(step) for step in comparison.steps],
    }
    if comparison.failure is None:
        return fields
    outcome = comparison.failure.outcome
    details = {name: getattr(outcome, name) for name in outcome.__slots__}
    return {**fields, "failure": {"side": comparison.failure.side, "sample": comparison.failure.sample, **details}}


def input_records(pairs: Sequence[InputPair]) -> list[dict[str, Any]]:
    """Return pairs of inputs as dicts for JSON. The name is null for a side that has no such input."""
    return [
        {
            "reference": pair.reference or None,
            "candidate": pair.candidate or None,
            "by": pair.by or None,
            "recorded": pair.is_recorded,
        }
        for pair in pairs
    ]


def _step(step: Step) -> dict[str, Any]:
    fields = {name: json_number(v) if isinstance(v, float) else v for name, v in asdict(step).items()}
    return {**fields, "agrees": step.agrees, "is_explained": step.is_explained}


def _first(first: First) -> dict[str, Any]:
    inputs = [
        {"layer": i.name, "type": i.type, "kind": i.kind, "line": i.line, **_figures(i.measurement)}
        for i in first.inputs
    ]
    return {
        **layer_record(first.layer),
        "inputs": inputs,
        "gain": json_number(first.gain),
        "differences": list(first.differences),
    }


def layer_record(layer: Layer, *, is_output: bool = False) -> dict[str, Any]:
    """Return a value that was compared as a dict for JSON."""
    head = {"name": layer.name} if is_output else {"layer": layer.name, "type": layer.type, "port": layer.port}
    return {
        **head,
        "line": layer.line,
        "file": layer.file,
        "candidate": layer.candidate,
        "element_type": layer.element_type,
        "agrees": layer.agrees,
        "sample": layer.sample,
        "iteration": layer.iteration,
        "rtol": layer.rtol,
        "atol": layer.atol,
        **_figures(layer.measurement),
        "budget": None if layer.budget is None else _budget(layer.budget),
    }


def _budget(budget: Budget) -> dict[str, Any]:
    return {name: json_number(v) if isinstance(v, float) else v for name, v in asdict(budget).items()}


def _figures(measurement: Measurement | None) -> dict[str, Any]:
    if measurement is None:
        return {}
    m = measurement
    return {
        "max_abs": json_number(m.max_abs),
        "max_rel": json_number(m.max_rel),
        "cosine": json_number(m.cosine),
        "snr": json_number(m.snr),
        "error": json_number(m.error),
        "worst": None if m.worst is None else list(m.worst),
        "outside": m.share,
        "nan": list(m.nan),
        "inf": list(m.inf),
        "problem": m.problem,
    }


def json_number(value: float | None) -> float | None:
    """Return a number as JSON can hold it: None if it is infinite or not defined."""
    return value if value is not None and math.isfinite(value) else None


def nothing_to_compare(sides: str) -> EngineError:
    """Return the error (IR704) for outputs that are empty, or NaN on both sides, so that they cannot differ."""
    message = f"the outputs of {sides} have no number: they are empty, or NaN on both sides, and nothing was compared"
    help = "pass other inputs (-i NAME=SPEC); `irrun run --nan` finds the layer that makes NaN"
    return EngineError(diagnostic("IR704", message, help=help))


def verdict(outputs: Sequence[Layer], layers: Sequence[Layer]) -> Verdict:
    """Return ``agree`` if all values agree, otherwise ``differ``."""
    return "agree" if all(value.agrees for value in (*outputs, *layers)) else "differ"
