"""The result of ``precision``, as dataclasses and as JSON."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from irrun.debug.budget.expected import Expected
from irrun.debug.low_precision.losses import Loss
from irrun.debug.low_precision.units import Unit
from irrun.debug.results import Layer, json_number, layer_record

__all__ = ["Kept", "Precision", "Quantizer", "Sensitivity", "Twin", "WeightForm"]


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """What a layer loses in the precision, and what this alone does to the outputs of the model.

    ``effect`` is the root mean square of the errors of the output that suffers most, divided by that of its values; it
    is infinite if NaN or Inf appear. If ``exact``, the model has been run with this layer in the precision and all
    others in full precision. Otherwise the effect is estimated.
    """

    name: str
    type: str
    file: str | None
    line: int | None
    overflows: int
    """The elements of its outputs that are finite in full precision and not in the lower one."""
    underflows: int
    """The elements of its outputs that become 0."""
    clamped: int
    """The elements of its constants that are beyond the range, and become its greatest value."""
    size: int
    """The elements of its outputs, in all samples and iterations."""
    magnitude: float
    """The greatest finite magnitude of an element of its outputs, in full precision."""
    place: tuple[int, tuple[int, ...]] | None
    """The sample, and the index in an output, of the greatest element that overflows; None if none does."""
    error: float
    """The root mean square of its own errors divided by that of its values."""
    snr: float | None
    """The ratio of signal and noise in decibels; None without noise."""
    effect: float
    exact: bool
    expected: float | None
    """The error to expect of its outputs if the whole model is in the precision, relative as ``error`` is."""
    is_inner: bool
    """Whether the layer is in the body of a loop or If."""
    form: str = ""
    """How the compressed model stores the weight of the layer, such as ``i4 symmetric, groups of 128``, and which
    layers quantize its inputs. Empty without a twin."""
    weight_snr: float | None = None
    """The ratio of signal and noise of that weight in decibels. None without a twin, and without such a weight."""

    @staticmethod
    def of(
        unit: Unit,
        loss: Loss,
        effect: float,
        exact: bool,
        expected: Expected,
        weight: tuple[str, float | None] = ("", None),
    ) -> Sensitivity:
        """Return the result for a layer. ``weight`` are the form of its weight and the ratio."""
        return Sensitivity(
            unit.name,
            unit.layer.type,
            unit.file,
            unit.line,
            loss.overflows,
            loss.underflows,
            loss.clamped,
            loss.size,
            loss.magnitude,
            loss.place,
            loss.error,
            loss.snr,
            effect,
            exact,
            expected.of_layer(unit.name),
            unit.is_inner,
            *weight,
        )

    def record(self) -> dict[str, Any]:
        """Return the result as a dict for JSON. A number that is infinite is null."""
        place = None if self.place is None else {"sample": self.place[0], "index": list(self.place[1])}
        return {
            "layer": self.name,
            "type": self.type,
            "line": self.line,
            "file": self.file,
            "overflows": self.overflows,
            "underflows": self.underflows,
            "clamped": self.clamped,
            "size": self.size,
            "magnitude": self.magnitude,
            "place": place,
            "error": json_number(self.error),
            "snr": json_number(self.snr),
            "effect": json_number(self.effect),
            "infinite": math.isinf(self.effect),
            "exact": self.exact,
            "expected": None if self.expected is None else json_number(self.expected),
            "form": self.form,
            "weight_snr": json_number(self.weight_snr),
        }


@dataclass(frozen=True, slots=True)
class Kept:
    """Layers that restore the tolerances of the outputs when they are kept in full precision.

    ``outputs`` are the outputs of the model then. If ``minimal``, no single layer can be left out.
    """

    layers: tuple[Sensitivity, ...]
    outputs: tuple[Layer, ...]
    minimal: bool


@dataclass(frozen=True, slots=True)
class WeightForm:
    """The layers whose weights a compressed model stores in the same form, such as ``u8 asymmetric, one scale``.

    ``bits`` is the size of an element there. ``is_exact`` says that the weights are equal to those of the twin.
    Otherwise, ``snr`` is the least ratio of signal and noise in decibels, and ``worst`` the layer that has it.
    """

    form: str
    bits: int
    layers: tuple[str, ...]
    is_exact: bool
    snr: float | None
    worst: str


@dataclass(frozen=True, slots=True)
class Quantizer:
    """A FakeQuantize, or another layer that only the compressed model has, on the way to inputs of ``readers``.

    ``saturated`` is the share of the values of all samples beyond its input range. ``snr`` is the ratio of signal and
    noise of its output in decibels, for true inputs. ``line`` is the line in the compressed file.
    """

    name: str
    type: str
    line: int | None
    levels: int | None
    readers: tuple[str, ...]
    saturated: float
    snr: float | None


@dataclass(frozen=True, slots=True)
class Twin:
    """How a compressed model differs from its twin, the file ``path``.

    ``forms`` are the forms of its weights, the one with the fewest bits first. ``rest`` is the error of the outputs of
    the compressed model, relative to the outputs of the twin with all weights and quantizers of that model: if it is
    not small, ``is_explained`` is False, and the two models differ in more than these.
    """

    path: str
    forms: tuple[WeightForm, ...]
    quantizers: tuple[Quantizer, ...]
    rest: float
    is_explained: bool

    def record(self) -> dict[str, Any]:
        """Return the difference as a dict for JSON."""
        return {
            "path": self.path,
            "forms": [
                {**asdict(form), "layers": list(form.layers), "snr": json_number(form.snr)} for form in self.forms
            ],
            "quantizers": [
                {**asdict(q), "readers": list(q.readers), "snr": json_number(q.snr)} for q in self.quantizers
            ],
            "rest": json_number(self.rest),
            "is_explained": self.is_explained,
        }


@dataclass(frozen=True)
class Precision:
    """The result of ``precision``.

    ``verdict`` is ``agree`` if the outputs of the whole model in the precision are within their tolerances. Otherwise
    it is ``overflow`` if a layer makes Inf or NaN, and ``differ`` if not. ``outputs`` are those outputs. ``layers`` are
    the layers that lose anything, the one with the greatest effect first. ``kept`` is None if it was not searched for.
    """

    precision: str
    accumulator: str
    verdict: Literal["agree", "differ", "overflow"]
    outputs: tuple[Layer, ...]
    layers: tuple[Sensitivity, ...]
    simulated: int
    """The number of layers that were simulated, also those that lose nothing."""
    kept: Kept | None
    samples: int
    runs: int
    """The runs of the model, over all samples."""
    order: tuple[str, ...]
    """The names of ``layers`` in the order of a run."""
    expected: Expected
    """The errors to expect of a candidate in the precision."""
    text: bool = False
    """Whether outputs were judged by their greedy tokens: ``Measurement.outside`` then counts positions."""
    twin: Twin | None = None
    """The twin with which a compressed model was compared."""

    @property
    def agrees(self) -> bool:
        """Whether the outputs of the whole model in the precision are within their tolerances."""
        return self.verdict == "agree"

    @property
    def overflowing(self) -> tuple[Sensitivity, ...]:
        """The layers whose own outputs overflow, in the order of a run."""
        position = {name: number for number, name in enumerate(self.order)}
        layers = [layer for layer in self.layers if layer.overflows]
        return tuple(sorted(layers, key=lambda layer: position[layer.name]))

    def ignored_scope(self) -> dict[str, Any]:
        """Return the arguments of ``nncf.IgnoredScope`` that exclude the layers to keep from quantization.

        NNCF does not know the layers in bodies of loops, which are left out.
        """
        layers = () if self.kept is None else self.kept.layers
        return {"names": [layer.name for layer in layers if not layer.is_inner]}

    def record(self) -> dict[str, Any]:
        """Return the result as a dict for JSON."""
        kept = None
        if self.kept is not None:
            outputs = [layer_record(output, is_output=True) for output in self.kept.outputs]
            names = [layer.name for layer in self.kept.layers]
            kept = {"layers": names, "minimal": self.kept.minimal, "outputs": outputs}
        return {
            "verdict": self.verdict,
            "precision": self.precision,
            "accumulator": self.accumulator,
            "outputs": [layer_record(output, is_output=True) for output in self.outputs],
            "expected": [
                {"name": output.name, "error": json_number(known.error), "allowed": json_number(known.allowed)}
                for position, output in enumerate(self.outputs)
                if (known := self.expected.outputs.get(position)) is not None
            ],
            "overflowing": [layer.name for layer in self.overflowing],
            "layers": [layer.record() for layer in self.layers],
            "keep": kept,
            "simulated": self.simulated,
            "samples": self.samples,
            "runs": self.runs,
            "text": self.text,
            "twin": self.twin and self.twin.record(),
        }
