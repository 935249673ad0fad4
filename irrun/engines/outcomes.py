"""What an engine answers: the interface of a loaded model, and the outcome of a run.

An outcome is a value: outputs, or a refusal, a crash or a timeout. ``to_record`` and ``from_record`` convert outcomes
to and from JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from irrun.engines.tensors import decoded, encoded

__all__ = [
    "VERSION",
    "Crash",
    "Failure",
    "Input",
    "Loaded",
    "Origin",
    "Output",
    "Outputs",
    "Place",
    "Refusal",
    "Timeout",
    "from_record",
    "to_record",
]

VERSION: Final = 1
"""The version of the records of outcomes and of the protocol."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an inner value: an output of a layer.

    ``layer`` is the name of the layer. A layer in a body is named ``loop/layer``. ``port`` is the position among the
    layer's outputs.
    """

    layer: str
    port: int = 0

    def __str__(self) -> str:
        return f"{self.layer}:{self.port}" if self.port else self.layer


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a loaded model: its names, its element type, and its shape as text (``[1,3,?,?]``)."""

    names: tuple[str, ...]
    type: str
    shape: str


@dataclass(frozen=True, slots=True)
class Origin:
    """What computes an inner value: the type of the layer, and other names of the value, such as that of its tensor."""

    type: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Loaded:
    """The interface of a loaded model: its inputs, the names of each output, and the inner values that it can show.

    ``places`` is empty if inner values were not asked for, or if the engine shows none. ``neutral`` says whether the
    outputs of a model that was loaded with its inner values are, to the last bit, those of the model as it is.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[tuple[str, ...], ...]
    places: Mapping[Place, Origin]
    neutral: bool = False


@dataclass(frozen=True, eq=False)
class Output:
    """An output of a run: its names, the first of which is its own, and its array."""

    names: tuple[str, ...]
    type: str
    array: np.ndarray


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of a run in the order of the model, and the seconds that the run took, with all messages.

    ``unseen`` are the places whose values were asked for, but with which the engine refuses the model.
    """

    outputs: tuple[Output, ...]
    seconds: float
    unseen: tuple[Place, ...] = ()

    def __getitem__(self, name: str) -> np.ndarray:
        for output in self.outputs:
            if name in output.names:
                return output.array
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The engine says that it does not load or run the model. ``message`` is its own text."""

    message: str
    reason: str = ""
    """``unavailable`` if the engine is not installed, ``memory`` if an allocation failed, otherwise empty."""

    @property
    def lines(self) -> list[str]:
        """The lines of the message that are not empty, at least one. Engines say why in the last one."""
        return [line for line in self.message.splitlines() if line.strip()] or ["it does not say why"]


@dataclass(frozen=True, slots=True)
class Crash:
    """The process of the engine ended, broke the protocol, or was ended because it took too much memory.

    ``cause`` says which, in words. ``log`` is the end of what the process printed.
    """

    cause: str
    log: str = ""


@dataclass(frozen=True, slots=True)
class Timeout:
    """The engine did not answer within ``seconds``. Its process was ended."""

    seconds: float


Failure = Refusal | Crash | Timeout
_FAILURES: Final = {"refusal": Refusal, "crash": Crash, "timeout": Timeout}


def to_record(outcome: Outputs | Failure) -> dict[str, Any]:
    """Return an outcome as a dict for JSON, with a version. Tensors are base64."""
    if isinstance(outcome, Outputs):
        values = [{"names": list(o.names), **_tensor(o)} for o in outcome.outputs]
        return {"version": VERSION, "outcome": "outputs", "outputs": values, "seconds": outcome.seconds}
    name = type(outcome).__name__.lower()
    return {"version": VERSION, "outcome": name, **{key: getattr(outcome, key) for key in outcome.__slots__}}


def from_record(record: Mapping[str, Any]) -> Outputs | Failure:
    """Return the outcome that ``to_record`` has converted. Raises ValueError for another version or kind."""
    if record.get("version") != VERSION:
        raise ValueError(f"the record has version {record.get('version')!r}; this irrun reads version {VERSION}")
    kind = record.get("outcome")
    if kind == "outputs":
        outputs = (Output(tuple(o["names"]), o["type"], _array(o)) for o in record["outputs"])
        return Outputs(tuple(outputs), float(record["seconds"]))
    if kind not in _FAILURES:
        raise ValueError(f"there is no outcome {kind!r}")
    return _FAILURES[kind](**{key: text for key, text in record.items() if key not in ("version", "outcome")})


def _tensor(output: Output) -> dict[str, Any]:
    type, shape, data = encoded(output.array, output.type)
    contents = {"values": data} if isinstance(data, list) else {"data": base64.b64encode(data).decode("ascii")}
    return {"type": type, "shape": list(shape), **contents}


def _array(record: Mapping[str, Any]) -> np.ndarray:
    data = record["values"] if "values" in record else base64.b64decode(record["data"])
    return decoded(record["type"], tuple(record["shape"]), data)
