"""What engines claim to run: one file for each vendor, whose lines quote the vendor's pages.

A case that an engine does not claim is not charged to it, whatever it does. The rules are the same for all engines. An
example:

    vendor = "OpenVINO's CPU plugin"
    names = "OpenVINO (?P<version>[0-9.]+) CPU .*"

    [[claim]]
    says = "CPU provides full functional support for models with dynamic shapes in terms of the opset coverage."
    page = "https://github.com/openvinotoolkit/openvino/blob/…/cpu-device.rst"
    operations = ["*"]
    declarations = ["static", "dims"]

    [opsets]
    "2024.6" = 15

``names`` is a pattern of the names that the engine gives itself. ``operations`` are patterns of versions (``Tile-1``),
``without`` those that a page excludes, ``types`` element types (of these operations alone, if the claim names any),
``declarations`` how tensors are declared. A case is claimed if claims cover its operation, its declaration and all its
element types, also those of constants; what no claim of a file mentions (``types``, say) is not restricted.
``computed`` gives the types in which other types are computed (``i64 = "i32"``): a case with a number beyond their
range, in an input, a constant or an expected output, is not claimed. A claim with ``releases`` is about versions of the
engine that begin so. ``opsets`` is the newest operation set of a version.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np

from irrun.conformance.suite import Case
from irrun.engines.values import read_tensor
from irrun.types import ELEMENT_TYPES

__all__ = ["FOLDER", "Claim", "Claims", "claims_of", "parsed"]

FOLDER: Final = Path(__file__).parent
"""The folder of the files."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a vendor's page, and what it claims or excludes. The docstring of the module has each field."""

    says: str
    page: str
    operations: Sequence[str] = ()
    without: Sequence[str] = ()
    types: Sequence[str] = ()
    declarations: Sequence[str] = ()
    releases: Sequence[str] = ()
    computed: Mapping[str, str] = field(default_factory=dict)

    def is_about(self, case: Case) -> bool:
        """Return whether the claim names the operation of a case, or none."""
        return not self.operations or _matches(case.operation, self.operations)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a vendor. ``opsets`` are the newest operation sets by the beginning of a version."""

    vendor: str
    names: str
    claims: Sequence[Claim]
    opsets: tuple[tuple[str, int], ...] = ()

    def covers(self, case: Case, engine: str) -> bool:
        """Return whether the engine of this name claims to do a case."""
        version = self._version(engine)
        claims = [
            claim for claim in self.claims if not claim.releases or any(_begins(version, r) for r in claim.releases)
        ]
        newest = next((opset for release, opset in self.opsets if _begins(version, release)), None)
        return (
            any(_matches(case.operation, claim.operations) for claim in claims)
            and not any(_matches(case.operation, claim.without) for claim in claims)
            and (newest is None or int(case.operation.rpartition("-")[2]) <= newest)
            and _within(_types(case), [type for claim in claims if claim.is_about(case) for type in claim.types])
            and _within([case.declaration], [kind for claim in claims for kind in claim.declarations])
            and all(_holds(case, claim.computed) for claim in claims)
        )

    def _version(self, engine: str) -> str:
        match = re.fullmatch(self.names, engine)
        return "" if match is None else match.groupdict().get("version") or ""


def _begins(version: str, release: str) -> bool:
    return f"{version}.".startswith(f"{release}.")


def _matches(operation: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(operation, pattern) for pattern in patterns)


def _within(found: Sequence[str], claimed: Sequence[str]) -> bool:
    return not claimed or set(found) <= set(claimed)


def _holds(case: Case, computed: Mapping[str, str]) -> bool:
    """Return whether the types in which others are computed can hold all numbers that go in and are to come out."""
    if not computed:
        return True
    records = [record for step in case.steps for record in (*step.inputs, *step.outputs)]
    tensors = [(record["type"], read_tensor(record)) for record in records if record["type"] in computed]
    for type, data in _constants(case):
        if type in computed:
            dtype = ELEMENT_TYPES[type].dtype
            count = len(data) // dtype.itemsize  # a case to refuse may end within a number
            tensors.append((type, np.frombuffer(data, dtype, count)))
    return not any(_is_beyond(array, computed[type]) for type, array in tensors)


def _types(case: Case) -> list[str]:
    return [*case.types, *(type for type, _ in _constants(case))]


def _constants(case: Case) -> Iterator[tuple[str, bytes]]:
    """Yield the element type and the bytes of each constant of the model, also of those in bodies."""
    for layer in ElementTree.fromstring(case.xml).iter("layer"):
        data = layer.find("data")
        if layer.get("type") == "Const" and data is not None:
            offset, size = int(data.get("offset", 0)), int(data.get("size", 0))
            yield data.get("element_type", ""), case.bin[offset : offset + size]


def _is_beyond(array: np.ndarray, type: str) -> bool:
    """Return whether a number is beyond the range of a type: too large for it or, in floats, too close to 0."""
    dtype = ELEMENT_TYPES[type].dtype
    if array.dtype.kind in "iu":
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
        return any(not least <= number <= greatest for number in array.ravel().tolist())
    size = np.abs(array[np.isfinite(array)])
    range = np.finfo(dtype)
    return bool(((size > range.max) | ((size < range.tiny) & (size > 0))).any())


@cache
def _every() -> tuple[Claims, ...]:
    return tuple(parsed(path.stem, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml")))


def claims_of(engine: str) -> Claims | None:
    """Return the claims of the engine of this name, or None if irrun knows no page that claims anything."""
    return next((claims for claims in _every() if re.fullmatch(claims.names, engine)), None)


def parsed(name: str, text: str) -> Claims:
    """Return the claims in the text of a file. Raises ValueError, which names the file, if a field is wrong."""
    try:
        fields: dict[str, Any] = tomllib.loads(text)
        claims = tuple(Claim(**claim) for claim in fields.pop("claim", ()))
        opsets = tuple(fields.pop("opsets", {}).items())
        return Claims(claims=claims, opsets=opsets, **fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}.toml: {error}") from None
