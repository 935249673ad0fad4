"""How far a value may be from its reference: by element type, by layer and by output."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from irrun.diagnostics import EngineError, diagnostic
from irrun.model.lookup import nearest
from irrun.types import ELEMENT_TYPES

__all__ = ["TOLERANCES", "Limit", "Tolerances", "read_tolerances"]

TOLERANCES: Final[Mapping[str, tuple[float, float]]] = {
    "f64": (1e-9, 1e-12),
    "f32": (1e-4, 1e-5),
    "f16": (1e-2, 1e-3),
    "bf16": (2e-2, 1e-2),
    "f8e4m3": (0.125, 0.0625),
    "f8e5m2": (0.25, 0.125),
}
"""Default (rtol, atol) by element type. Every other type is compared exactly."""

_TABLES: Final = ("types", "layers", "outputs")


@dataclass(frozen=True, slots=True)
class Limit:
    """The limits of one value; None for one that is left to a more general rule."""

    rtol: float | None = None
    atol: float | None = None

    def over(self, general: Limit) -> Limit:
        """Return these limits, completed from more ``general`` ones."""
        return Limit(general.rtol if self.rtol is None else self.rtol, general.atol if self.atol is None else self.atol)


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The limits of all values.

    A value has the limits of its output name; what these leave open, those of the first glob that matches its layer;
    then ``everywhere``; then those of its element type, which complete ``TOLERANCES``.
    """

    everywhere: Limit = Limit()
    types: Mapping[str, Limit] = field(default_factory=dict)
    layers: Mapping[str, Limit] = field(default_factory=dict)
    outputs: Mapping[str, Limit] = field(default_factory=dict)

    def of_layer(self, layer: str, type: str) -> tuple[float, float]:
        """Return (rtol, atol) for a value of an element type that a layer computes."""
        named = next(
            (limit for glob, limit in self.layers.items() if layer == glob or fnmatchcase(layer, glob)), Limit()
        )
        return self._completed(named, type)

    def of_output(self, name: str, type: str) -> tuple[float, float]:
        """Return (rtol, atol) for an output of an element type."""
        return self._completed(self.outputs.get(name, Limit()), type)

    def overridden(self, everywhere: Limit) -> Tolerances:
        """Return these tolerances, with limits that hold for every value that is not named."""
        return replace(self, everywhere=everywhere.over(self.everywhere))

    def _completed(self, named: Limit, type: str) -> tuple[float, float]:
        limit = (
            named.over(self.everywhere).over(self.types.get(type, Limit())).over(Limit(*TOLERANCES.get(type, (0, 0))))
        )
        assert limit.rtol is not None
        assert limit.atol is not None
        return limit.rtol, limit.atol


def read_tolerances(path: str | os.PathLike[str]) -> Tolerances:
    """Return the tolerances that a TOML file describes.

    The tables are ``types``, ``layers`` and ``outputs``; each maps names, or globs of layers, to ``rtol`` and ``atol``.
    Both may also stand before the tables. Raises EngineError (IR703) if the file cannot be read or has another entry.
    """
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
        everywhere = _limit("the file", {key: content[key] for key in content if key not in _TABLES})
        tables = {name: _table(name, content.get(name, {})) for name in _TABLES}
    except OSError as error:
        raise _bad(path, (error.strerror or str(error)).lower(), "check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _bad(path, f"it is not TOML: {error}", 'write entries such as layers."conv*" = { rtol = 1e-3 }') from None
    except ValueError as error:
        raise _bad(path, str(error), "the tables are types, layers and outputs, the numbers rtol and atol") from None
    return Tolerances(everywhere, tables["types"], tables["layers"], tables["outputs"])


def _table(name: str, table: Any) -> dict[str, Limit]:
    """Return the limits of a table. Raises ValueError."""
    if not isinstance(table, dict):
        raise ValueError(f"{name} is no table")
    for key in table if name == "types" else ():
        if key not in ELEMENT_TYPES:
            near = nearest(key, ELEMENT_TYPES)
            raise ValueError(f"{key!r} is no element type" + (f"; did you mean {near[0]}?" if near else ""))
    return {key: _limit(f"{name}.{key}", limits) for key, limits in table.items()}


def _limit(place: str, limits: Any) -> Limit:
    """Return the limits of an entry. Raises ValueError."""
    if not isinstance(limits, dict):
        raise ValueError(f"{place} is neither rtol nor atol nor a table of them")
    for key, number in limits.items():
        if key not in ("rtol", "atol"):
            raise ValueError(f"{place} has the unknown entry {key!r}")
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
            raise ValueError(f"{key} of {place} is {number!r}, not a number from 0 on")
    return Limit(**{key: float(number) for key, number in limits.items()})


def _bad(path: str | os.PathLike[str], why: str, help: str) -> EngineError:
    message = f"cannot use the tolerances of {os.fspath(path)}: {why}"
    return EngineError(diagnostic("IR703", message, file=os.fspath(path), help=help))
