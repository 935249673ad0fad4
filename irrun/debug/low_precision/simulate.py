"""Simulate a model in a lower precision: what each layer loses, what this does to the outputs, what to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from irrun.api import PathLike, read_model
from irrun.debug.inputs import Inputs, samples_of
from irrun.debug.low_precision.effects import rank
from irrun.debug.low_precision.formats import FORMATS
from irrun.debug.low_precision.losses import Losses, Ranges
from irrun.debug.low_precision.outputs import Outputs
from irrun.debug.low_precision.results import Kept, Precision, Sensitivity
from irrun.debug.low_precision.search import restoring
from irrun.debug.low_precision.simulation import Deployed, Simulation, Style
from irrun.debug.metrics import measure
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
    accumulator: Literal["f32", "same"] = "f32",
    samples: int = 1,
    seed: int = 0,
    tolerances: Tolerances | None = None,
    runs: int = 64,
    search: bool = True,
    weights: PathLike | None = None,
    max_memory: int | None = None,
    on_run: Callable[[int], None] | None = None,
) -> Precision:
    """Simulate a model in the precision ``to``: ``f16``, ``bf16``, ``int8`` or ``int8-per-channel``.

    Return the layers that lose anything, ranked by what each one alone does to the outputs, and the layers to keep in
    full precision so that the outputs are within their tolerances.

    - ``inputs``, ``samples`` and ``seed`` are those of ``compare``.
    - ``accumulator`` is ``f32``, or ``same`` for sums that are rounded to the precision after every 32 terms (f16 and
      bf16 only).
    - ``tolerances`` are those of the outputs. The default is that of the precision; for int8, that of f8e4m3.
    - ``runs`` is about how often the model is run on each sample to rank the layers, and as often to shorten the list
      of layers to keep. With more layers than runs, some effects are estimated (``Sensitivity.exact``).
    - ``search`` says whether to search for the layers to keep.
    - ``on_run`` is called before each run over all samples, with the number of such runs so far.

    Raises ValueError for an unknown precision or accumulator, the errors of ``irrun.compile`` for the model, FeedError
    for inputs that do not fit, EngineError (IR704) if no output has a number, and ExecutionError for a run that fails.
    """
    if to not in FORMATS:
        raise ValueError(f"{to!r} is no precision that can be simulated; use one of {', '.join(FORMATS)}")
    format = FORMATS[to]
    if accumulator not in ACCUMULATORS or (accumulator == "same" and format.is_quantized):
        raise ValueError(f"{to} cannot accumulate in {accumulator!r}; int8 accumulates exactly, others in f32 or same")
    if not isinstance(model, Model):
        model = read_model(model, weights)
    simulation = Simulation(model, max_memory or default_max_memory())
    drawn = list(samples_of(model, inputs, samples, seed))
    if not drawn:
        raise nothing_to_compare(f"0 samples of {model.source.path}")
    outputs = Outputs(simulation, drawn, format, tolerances or Tolerances())
    if not any(measure(array, array, 0, 0).numbers for arrays in outputs.true for array in arrays):
        raise nothing_to_compare(model.source.path)
    count = 0

    def counted() -> None:
        nonlocal count
        if on_run is not None:
            on_run(count)
        count += 1

    ranges = Ranges()
    for sample in drawn if format.is_quantized else ():
        simulation(ranges, sample)
    style = Style(format, accumulator == "same", ranges.by_input)
    losses = Losses(style)
    for losses.sample, sample in enumerate(drawn):
        simulation(losses, sample)
    lowered = outputs.compare(Deployed(style, frozenset()))
    effects = rank(outputs, style, losses.by_name, runs, counted)
    layers = tuple(
        Sensitivity.of(simulation.units[name], losses.by_name[name], effect.size, effect.exact)
        for name, effect in effects.items()
    )
    agrees = all(output.agrees for output in lowered)
    kept = Kept((), lowered, minimal=True) if agrees else None
    if search and not agrees:
        names, restored, minimal = restoring(outputs, style, losses.by_name, list(effects), runs, counted)
        known = {layer.name: layer for layer in layers}
        kept = Kept(
            tuple(
                known.get(name) or Sensitivity.of(simulation.units[name], losses.by_name[name], 0.0, True)
                for name in names
            ),
            restored,
            minimal,
        )
    overflows = any(layer.overflows for layer in layers)
    return Precision(
        to,
        accumulator,
        "agree" if agrees else "overflow" if overflows else "differ",
        lowered,
        layers,
        len(losses.by_name),
        kept,
        len(drawn),
        simulation.runs,
        tuple(losses.by_name),
    )
