"""Where OpenVINO departs from its specification: one file for each case, with the smallest model beside it.

``NAME.toml`` says everything about a departure, and ``NAME.xml`` (with ``NAME.bin``, if it has weights) is the smallest
model that shows it. ``docs/departures.md``, the tests, cases of the conformance suite and the explanations of the
fuzzer are made from these files. An example:

    operation = "Divide"
    page = "arithmetic/divide-1"
    case = "u8: 8 / 3 with unknown dims; so i8"
    openvino = "computed as f32 and rounded: 3"
    irrun = "2"
    no_issue = "2026-11-24: not reported yet"
    recognised = ['^refusal Divide-1 .*inputs of different types']

    [[call]]
    feeds = [[8], 3]
    irrun = [2]
    openvino = [3]

Where OpenVINO gives other values, ``NAME.py`` has a function ``openvino(layer)``. It returns the outputs that OpenVINO
gives for a layer (``irrun.fuzz.predicting.Layer``), masked where they are unrelated memory, or None if the departure
does not concern the layer. An output is None if its shape, too, depends on unrelated memory. The fuzzer explains a
disagreement only if every element is as predicted.

A tensor is a number, a text or an array of TOML. A table gives what an array cannot say: ``{ shape = [0, 4] }`` has no
elements, ``{ shape = [2, 3], fill = nan }`` repeats one, and ``{ type = "f32", values = [2] }`` names the element type.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

__all__ = ["FOLDER", "Call", "Departure", "Either", "Expected", "Outcome", "Pattern", "Tensor", "departures", "parsed"]

FOLDER: Final = Path(__file__).parent
"""The folder of the files."""


class Outcome(Enum):
    """What an engine does instead of giving other values."""

    SAME = "same"
    """OpenVINO gives what irrun gives, though the page says otherwise or nothing."""
    REFUSES = "refuses"
    CRASHES = "crashes"
    UNDEFINED = "undefined"
    """OpenVINO reads or writes where it should not: it is not asked."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file. ``type`` is the name of its element type, empty if it is the one that the model declares."""

    values: Any
    type: str = ""
    shape: tuple[int, ...] | None = None

    def array(self) -> np.ndarray:
        """Return the elements in numpy's type for them. Raises ValueError if they do not fit the shape."""
        array = np.asarray(self.values)
        if self.shape is None:
            return array
        return np.broadcast_to(array, self.shape).copy() if array.ndim == 0 else array.reshape(self.shape)


@dataclass(frozen=True)
class Either:
    """Outputs of which OpenVINO gives one or another, and what this depends on."""

    outputs: tuple[Tensor, ...]
    why: str


Expected = Tensor | Outcome | Either


@dataclass(frozen=True)
class Call:
    """One inference: its inputs, the output that irrun gives, and what OpenVINO does."""

    feeds: tuple[Tensor, ...]
    irrun: Expected
    openvino: Expected


@dataclass(frozen=True)
class Pattern:
    """A regular expression of the fuzzer's descriptions. ``where`` names a condition on its groups, or is empty."""

    pattern: str
    where: str = ""


@dataclass(frozen=True)
class Departure:
    """A case in which OpenVINO departs from its specification. Fields without a default stand in every file."""

    name: str
    """The name of the file."""
    operation: str
    """The type of the operation."""
    page: str
    """Its page in the specification, such as ``arithmetic/divide-1``."""
    case: str
    """The case, in Markdown."""
    openvino: str
    """What OpenVINO does, in Markdown."""
    irrun: str
    """What irrun does, in Markdown."""
    calls: tuple[Call, ...]
    """Inferences in one state (``[[call]]``). The last one shows the departure."""
    also: tuple[str, ...] = ()
    """Other types that depart in the same way; ``case`` names them."""
    sentence: str = ""
    """What the page says about the case, word for word, with ``…`` for what is left out; empty if nobody has looked."""
    commit: str = ""
    """The commit of OpenVINO's repository in which the page has the sentence."""
    issue: str = ""
    """The address of the issue upstream."""
    no_issue: str = ""
    """Why there is no issue, after the date of this answer."""
    report: str = ""
    """The text of an issue that is ready to send: its title, then what happens, a program and what the page says."""
    status: str = ""
    """``open`` if the page gives no answer."""
    kernels: str = "cpu"
    """The kernels of OpenVINO that depart: those of the ``cpu`` plugin, or the reference kernels of its ``core``."""
    instructions: str = ""
    """The flag of the processor's instructions that the departure needs, such as ``avx512f``; empty for any."""
    recognised: tuple[Pattern, ...] = ()
    """The patterns by which the fuzzer recognises the departure."""
    before: tuple[str, ...] = ()
    """Departures and reasons whose patterns are tried after those of this one."""
    general: bool = False
    """Whether the patterns are tried after those of all other departures."""

    @cached_property
    def predicts(self) -> Callable[[Any], Any] | None:
        """The function that computes what OpenVINO gives for a layer, or None if there is no ``NAME.py``."""
        if not (FOLDER / f"{self.name}.py").exists():
            return None
        return importlib.import_module(f"{__name__}.{self.name}").openvino

    @property
    def model(self) -> Path:
        """The file of the smallest model."""
        return FOLDER / f"{self.name}.xml"

    @property
    def shown(self) -> Call:
        """The call that shows the departure."""
        return self.calls[-1]

    @property
    def issue_link(self) -> str:
        """The link to the issue in Markdown, with its number as text; empty if there is none."""
        return f"[#{self.issue.rpartition('/')[2]}]({self.issue})" if self.issue else ""

    @property
    def is_followed(self) -> bool:
        """Whether irrun does as OpenVINO does."""
        return self.shown.openvino is Outcome.SAME


@cache
def departures() -> tuple[Departure, ...]:
    """Return all departures by operation, those of the same operation by name.

    Raises ValueError, which names the file, if one of them is wrong.
    """
    found = [parsed(path.stem, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))]
    return tuple(sorted(found, key=lambda departure: (departure.operation, departure.name)))


def parsed(name: str, text: str) -> Departure:
    """Return the departure in the text of a file. Raises ValueError if a field is missing, unknown or wrong."""
    try:
        fields: dict[str, Any] = tomllib.loads(text)
        fields["calls"] = tuple(_call(**call) for call in fields.pop("call"))
        fields["recognised"] = tuple(map(_pattern, fields.get("recognised", ())))
        fields |= {key: tuple(fields.get(key, ())) for key in ("also", "before")}
        departure = Departure(name, **fields)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}.toml: {error}") from None
    if bool(departure.issue) == bool(departure.no_issue):
        raise ValueError(f"{name}.toml: it needs either issue or no_issue")
    if bool(departure.sentence) != bool(departure.commit):
        raise ValueError(f"{name}.toml: a sentence needs the commit of its page")
    if departure.status not in ("", "open") or departure.kernels not in ("cpu", "core"):
        raise ValueError(f"{name}.toml: status may be open, and kernels cpu or core")
    return departure


def _call(feeds: list[Any], irrun: Any, openvino: Any) -> Call:
    return Call(tuple(map(_tensor, feeds)), _expected(irrun), _expected(openvino))


def _pattern(value: str | Mapping[str, str]) -> Pattern:
    return Pattern(value) if isinstance(value, str) else Pattern(**value)


def _expected(value: Any) -> Expected:
    if isinstance(value, str):
        return Outcome(value)
    if isinstance(value, dict) and "either" in value:
        return Either(tuple(map(_tensor, value["either"])), value["why"])
    return _tensor(value)


def _tensor(value: Any) -> Tensor:
    if not isinstance(value, dict):
        return Tensor(value)
    shape = tuple(value["shape"]) if "shape" in value else None
    unknown = value.keys() - {"shape", "fill", "type", "values"}
    if unknown:
        raise ValueError(f"a tensor has no {', '.join(sorted(unknown))}")
    return Tensor(value.get("fill", value.get("values", [])), value.get("type", ""), shape)
