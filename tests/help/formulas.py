"""Witness of `irrun why`: every formula is worked out and compared with what a run gives."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import irrun
from irrun.inference.trace import Derivation, Place, Trace

Number = Callable[[Place], int]
"""What a place holds."""


def worked_out(step: Derivation, number: Number) -> int:
    """The formula of a step, from its text and the numbers of its sources."""
    text = str(step.formula)
    for symbol in sorted(step.sources, key=len, reverse=True):
        text = text.replace(symbol, f"({number(step.sources[symbol])})")
    assert re.fullmatch(r"(?:floor|ceil|max|min|broadcast|[-+*/%(), 0-9])+", text), text
    text = re.sub(r"\d+", lambda digits: f"Fraction({digits[0]})", text)
    found = eval(text, {
        "Fraction": Fraction, "floor": math.floor, "ceil": math.ceil, "max": max, "min": min,
        "broadcast": lambda a, b: b if a == 1 else a,
    })  # fmt: skip
    assert found == int(found)
    return int(found)


def prove(trace: Trace, number: Number | None = None) -> Counter[str]:
    """Work out every formula of a model; of its bodies, too, where all is static.

    ``number`` tells what places hold in a run; by default, what is known of them. Returns how many places there are
    of which kind: a formula, a number of the operation's own, the end of a chain, or untold.
    """
    found: Counter[str] = Counter()
    for part in trace.all() if number is None else [trace]:
        for id, layer in part.model.layers.items():
            for output in range(len(layer.outputs)):
                for place in part.places(id, output):
                    step = part.derivation(place)
                    if step.formula is None:
                        found["untold" if layer.inputs else "end"] += 1
                    elif number is not None or all(s.trace.dim(s).is_static for s in step.sources.values()):
                        value = number(place) if number else step.dim.value
                        assert worked_out(step, number or _known) == value, (layer.type, layer.name, str(step.formula))
                        found["own" if not step.sources else "formula"] += 1
                    else:
                        found["unknown"] += 1
    return found


def _known(place: Place) -> int:
    value = place.trace.dim(place).value
    assert value is not None
    return value


def in_a_run(model: irrun.Model, feeds: list[np.ndarray]) -> Number:
    """What the places of a model hold when it runs."""
    executable = irrun.compile(model)
    arrays = executable(feeds, taps=["*"]).taps

    def number(place: Place) -> int:
        array = arrays.get(model.output_name(place.layer, place.output))
        if array is None or place.trace.model is not model:  # a constant that no kernel reads any more, or of a body
            return _known(place)
        return int(array.flat[place.index]) if place.is_element else array.shape[place.index]

    return number
