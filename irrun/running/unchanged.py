"""Say whether an edited model still runs, and gives what it gave before the edit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from irrun.diagnostics import ExecutionError, IrrunError, ModelError, diagnostic
from irrun.inference.propagate import weights_missing
from irrun.inference.unseeded import unseeded_behind
from irrun.model import Model
from irrun.running.executor import Executable
from irrun.running.generate import declared, draw
from irrun.running.live import default_max_memory

__all__ = ["Unchanged"]

_SAMPLES: Final = 2
"""The random inputs on which both models run."""
_MAX_SECONDS: Final = 20.0
"""The most seconds that the runs of one model and its edits may take together. A run is not stopped within a layer."""

Feeds = dict[int, np.ndarray]


class Unchanged:
    """Compares edits of a model with the model, by running both on the same random inputs, layer by layer.

    ``read`` returns the model, and raises IrrunError if its meaning is open. ``values`` is whether the outputs must
    stay: False if the model contradicts itself so that its values are not defined. ``unchecked`` says afterwards why an
    edit could not be compared, and is None if every edit was.
    """

    def __init__(self, read: Callable[[], Model], *, values: bool = True, seconds: float = _MAX_SECONDS) -> None:
        self.unchecked: str | None = None
        self._read, self._values = read, values
        self._end = time.monotonic() + seconds
        self._memory = default_max_memory()
        self._samples: list[tuple[Feeds, list[np.ndarray]]] | None = None

    def __call__(self, edited: Callable[[], Model]) -> bool:
        """Return whether the model that ``edited`` returns runs where the original runs, and gives the same."""
        samples = self._expected()
        if not samples:
            return True
        try:
            model = edited()
            if not _takes(model, self._read()):
                return False
            executable = self._executable(model)
            for feeds, expected in samples:
                executable.restart()
                outputs = executable({**feeds})
                got = [outputs[number] for number in range(len(model.results))]
                if self._values and not _are_same(model, got, expected):
                    return False
        except IrrunError as error:
            if time.monotonic() < self._end:
                return False
            self.unchecked = error.diagnostics[0].message
        return True

    def _expected(self) -> list[tuple[Feeds, list[np.ndarray]]]:
        """Return inputs with the outputs of the original; none if it does not run."""
        if self._samples is not None:
            return self._samples
        self._samples = []
        try:
            model = self._read()
            executable = self._executable(model)
        except IrrunError as error:
            if error.diagnostics[0].code in ("IR501", "IR604", "IR607"):
                self.unchecked = error.diagnostics[0].message
            return []
        for seed in range(_SAMPLES):
            try:
                feeds = draw(model, seed, max_memory=self._memory)
                executable.restart()
                outputs = executable({**feeds})
            except IrrunError as error:
                self.unchecked = error.diagnostics[0].message
                return []
            self._samples.append((feeds, [np.copy(outputs[number]) for number in range(len(model.results))]))
        return self._samples

    def _executable(self, model: Model) -> Executable:
        """Return the executable of a model. Raises ModelError without weights, ExecutionError if no time is left."""
        if model.weights is None and model.constants:
            raise ModelError(weights_missing(model))
        seconds = self._end - time.monotonic()
        if seconds <= 0:
            message = "both models together run longer than irrun waits"
            raise ExecutionError(diagnostic("IR607", message, source=model.source))
        return Executable(model, strict=False, max_memory=self._memory, exact=True, timeout=seconds)


def _takes(edited: Model, model: Model) -> bool:
    """Return whether an edited model has the inputs of the original, with the same types and shapes."""
    return [declared(edited, p) for p in edited.parameters] == [declared(model, p) for p in model.parameters]


def _are_same(model: Model, got: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Return whether every bit of the outputs is equal, apart from those of layers that draw without a seed."""
    return len(got) == len(expected) and all(
        a.dtype == b.dtype
        and a.shape == b.shape
        and (
            np.array_equal(a, b, equal_nan=a.dtype.kind in "fV")
            or unseeded_behind(model, model.results[number].id) is not None
        )
        for number, (a, b) in enumerate(zip(got, expected))
    )
