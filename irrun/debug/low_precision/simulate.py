"""Simulate a model in a lower precision: what each layer loses, what this does to the outputs, what to keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

from irrun.api import PathLike, read_model
from irrun.debug.budget.expected import expect
from irrun.debug.budget.outputs import roundings
from irrun.debug.budget.precisions import InEffect
from irrun.debug.inputs import Inputs, samples_of
from irrun.debug.low_precision.effects import rank
from irrun.debug.low_precision.exchange import Copy
from irrun.debug.low_precision.formats import FORMATS, Format
from irrun.debug.low_precision.losses import Losses, Ranges
from irrun.debug.low_precision.outputs import Outputs, effect_of
from irrun.debug.low_precision.results import Kept, Precision, Sensitivity
from irrun.debug.low_precision.search import restoring
from irrun.debug.low_precision.simulation import Deployed, Simulation, Style
from irrun.debug.results import nothing_to_compare
from irrun.debug.tolerances import Tolerances
from irrun.model import Model
from irrun.running.live import default_max_memory

__all__ = ["ACCUMULATORS", "precision"]

ACCUMULATORS: Final = ("f32", "same")
"""The types in which sums are kept: float32, or the simulated precision itself."""


def precision(
    model: Model | PathLike,
    inputs: Inputs = None,
    *,
    to: str = "f16",
    group_size: int = 128,
    twin: Model | PathLike | None = None,
    accumulator: Literal["f32", "same"] = "f32",
    samples: int = 1,
    seed: int = 0,
    tolerances: Tolerances | None = None,
    text: bool = False,
    runs: int = 64,
    search: bool = True,
    weights: PathLike | None = None,
    max_memory: int | None = None,
    on_run: Callable[[int], None] | None = None,
) -> Precision:
    """Simulate a model in the precision ``to``: ``f16``, ``bf16``, ``int8``, ``int8-per-channel``,
    ``int4`` or ``int4-asymmetric``.

    With ``twin``, the model that was compressed into ``model``, compare the compressed model with it instead of ``to``:
    a layer of the twin is then in the precision of the compressed model if it has the weights of that model.

    Return the layers that lose anything, ranked by what each one alone does to the outputs, and the layers to keep in
    full precision so that the outputs are within their tolerances.

    - ``inputs``, ``samples`` and ``seed`` are those of ``compare``.
    - ``group_size`` is the number of int4 weights of a row that share a scale; 0 for all.
    - ``accumulator`` is ``f32``, or ``same`` for sums that are rounded to the precision after every 32 terms (f16 and
      bf16 only).
    - ``tolerances`` are those of the outputs. The default is that of the precision; for int8 and compressed models,
      that of f8e4m3.
    - ``text`` judges outputs [batch, positions, vocabulary] by the greedy token at each position, not by tolerances.
    - ``runs`` is about how often the model is run on each sample to rank the layers, and as often to shorten the list
      of layers to keep. With more layers than runs, some effects are estimated (``Sensitivity.exact``).
    - ``search`` says whether to search for the layers to keep.
    - ``on_run`` is called before each run over all samples, with the number of such runs so far.

    Raises ValueError for an unknown precision or accumulator or a negative group size, the errors of ``irrun.compile``
    for the model, FeedError for inputs that do not fit, EngineError (IR704) if no output has a number or ``twin`` is a
    twin of another model, and ExecutionError for a run that fails.
    """
    if to not in FORMATS:
        raise ValueError(f"{to!r} is no precision that can be simulated; use one of {', '.join(FORMATS)}")
    if group_size < 0:
        raise ValueError(f"a group has {group_size} weights; pass 0 or more")
    format = replace(FORMATS[to], group=group_size)
    if accumulator not in ACCUMULATORS or (accumulator == "same" and format.is_quantized):
        raise ValueError(
            f"{to} cannot accumulate in {accumulator!r}; integers accumulate exactly, others in f32 or same"
        )
    if not isinstance(model, Model):
        model = read_model(model, weights)
    simulation, copy = Simulation(model, max_memory or default_max_memory()), None
    drawn = list(samples_of(model, inputs, samples, seed))
    if not drawn:
        raise nothing_to_compare(f"0 samples of {model.source.path}")
    if twin is not None:
        twin = twin if isinstance(twin, Model) else read_model(twin)
        copy = Copy(Simulation(twin, max_memory or default_max_memory()), simulation)
        simulation, drawn = copy.original, [copy.sample(sample) for sample in drawn]
    outputs = Outputs(
        simulation, drawn, format if copy is None else copy.style.format, tolerances or Tolerances(), text=text
    )
    count = 0

    def counted() -> None:
        nonlocal count
        if on_run is not None:
            on_run(count)
        count += 1

    style = copy.style if copy is not None else _style(outputs, format, accumulates=accumulator == "same")
    losses = Losses(style)
    for losses.sample, sample in enumerate(drawn):
        simulation(losses, sample)
    lowered = outputs.compare(Deployed(style, frozenset()))
    found = lowered if copy is None else outputs.compare_runs(copy.outputs)
    rounded = () if copy is not None or format.is_quantized else roundings((InEffect(), InEffect(to)))
    behaviours = [Deployed(style, frozenset()), *(b for b in rounded if not isinstance(b, Deployed))]
    expected = expect(Simulation(simulation.model, max_memory or default_max_memory()), to, behaviours, drawn)
    effects = rank(outputs, style, losses.by_name, runs, counted)

    def sensitivity(name: str, size: float, exact: bool) -> Sensitivity:
        weight = ("", None) if copy is None else copy.style.of_weight(name)
        return Sensitivity.of(simulation.units[name], losses.by_name[name], size, exact, expected, weight)

    layers = {name: sensitivity(name, effect.size, effect.exact) for name, effect in effects.items()}
    agrees = all(output.agrees for output in found)
    kept = Kept((), found, minimal=True) if agrees else None
    if search and not agrees and not all(output.agrees for output in lowered):
        names, restored, minimal = restoring(outputs, style, losses.by_name, list(effects), runs, counted)
        kept = Kept(tuple(layers.get(name) or sensitivity(name, 0.0, True) for name in names), restored, minimal)
    overflows = any(layer.overflows for layer in layers.values())
    return Precision(
        to if copy is None else style.format.name,
        accumulator,
        "agree" if agrees else "overflow" if overflows else "differ",
        found,
        tuple(layers.values()),
        len(losses.by_name),
        kept,
        len(drawn),
        simulation.runs,
        tuple(losses.by_name),
        expected,
        text,
        None if copy is None else copy.report(outputs, effect_of(found)),
    )


def _style(outputs: Outputs, format: Format, *, accumulates: bool) -> Style:
    """Return the style of a precision, for which int8 needs the ranges of all samples."""
    ranges = Ranges()
    for sample in outputs.samples if format.is_quantized and not format.is_int4 else ():
        outputs.simulation(ranges, sample)
    return Style(format, accumulates, ranges.by_input)
