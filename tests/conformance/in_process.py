"""irrun as an engine in the process of the tests. An exception that is no IrrunError is a bug, and ends the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import irrun
from irrun.engines import Failure, Input, Loaded, Output, Outputs, Place, Refusal, RuntimeGraph, Value
from irrun.types import UNKNOWN_RANK

__all__ = ["InProcess"]


class InProcess:
    """irrun with its default plan or, if ``exact``, with the defining kernel of each layer.

    ``read`` returns the model at a path. ``message`` is the text of the last refusal, empty if the last model was
    accepted.
    """

    def __init__(self, *, exact: bool, read: Callable[[Any], irrun.Model] = irrun.read_model) -> None:
        self.name = f"irrun {irrun.__version__}"
        self.properties: Mapping[str, str] = {}
        self.exact = exact
        self.read = read
        self.message = ""
        self.model: irrun.Model | None = None
        self.executable: irrun.Executable | None = None

    def load(self, path: str | os.PathLike[str] | None = None, *, inner: bool = False) -> Loaded | Failure:
        """See ``Engine.load``."""
        assert path is not None
        self.executable, self.message = None, ""
        try:
            self.model = model = self.read(path)
            self.executable = irrun.compile(model, exact=self.exact)
        except irrun.IrrunError as error:
            return self._refusal(error)
        inputs = (
            Input(tuple(model.input_names(p)), p.outputs[0].type.name if p.outputs[0].type else "dynamic",
                  str(p.outputs[0].shape or UNKNOWN_RANK))
            for p in model.parameters
        )  # fmt: skip
        return Loaded(tuple(inputs), tuple(tuple(model.result_names(r)) for r in model.results), {})

    def infer(
        self, feeds: Mapping[Any, np.ndarray], taps: Sequence[Place] = (),
        on_value: Callable[[Value], None] | None = None, on_repeated: Callable[[Value], None] | None = None,
    ) -> Outputs | Failure:  # fmt: skip
        """See ``Engine.infer``."""
        assert self.executable is not None
        try:
            outputs = self.executable([feeds[position] for position in range(len(feeds))])
        except irrun.IrrunError as error:
            return self._refusal(error)
        types = [self.executable.plan.types[slot] for slot in self.executable.plan.results]
        return Outputs(tuple(Output((), type.name, array) for type, array in zip(types, outputs.arrays)), 0)

    def runtime(self, feeds: Mapping[Any, np.ndarray], runs: int = 1) -> RuntimeGraph | Failure:
        """See ``Engine.runtime``."""
        return Refusal(f"{self.name} shows no runtime graph")

    def save(self, path: str | os.PathLike[str]) -> Failure | None:
        """See ``Engine.save``."""
        return Refusal(f"{self.name} does not rewrite models")

    def _refusal(self, error: irrun.IrrunError) -> Refusal:
        self.message = str(error)
        return Refusal(self.message)

    def reset(self) -> Failure | None:
        """See ``Engine.reset``."""
        if self.executable is not None:
            self.executable.reset_state()
        return None

    def release(self) -> None:
        """See ``Engine.release``."""
        self.model = self.executable = None
