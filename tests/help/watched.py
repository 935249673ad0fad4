"""The steps that a run consists of, as a hook sees them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import irrun
from irrun.planning.steps import Part


class Watched:
    """A hook that notes the steps of a run as it is without the hook: joined, and with what they read and give."""

    joined = True

    def __init__(self) -> None:
        self.steps: list[irrun.Step] = []
        self.inputs: list[Sequence[np.ndarray | None]] = []
        self.outputs: list[Sequence[np.ndarray]] = []

    def before(self, step: irrun.Step, inputs: Sequence[np.ndarray | None]) -> None:
        pass

    def after(self, step: irrun.Step, inputs: Sequence[np.ndarray | None], outputs: Sequence[np.ndarray]) -> None:
        self.steps.append(step)
        self.inputs.append(inputs)
        self.outputs.append(outputs)

    @property
    def layers(self) -> list[str]:
        """The types of the layers of each step, with a + between those that are one step."""
        return ["+".join(layer.type for layer in step.layers) for step in self.steps]


def kernel_parts(executable: irrun.Executable) -> list[Part]:
    """The kernels of the steps of a model, with the layers of each."""
    steps = executable.plan.steps
    return [part for step in steps for part in (step.parts() if step.parts else [Part(step.layers, step.kernel, 0, 0)])]


def watch(executable: irrun.Executable, feeds: Sequence[np.ndarray]) -> Watched:
    """Run a model once; what its steps were."""
    watched = Watched()
    executable(feeds, hooks=[watched])
    return watched
