"""A model with the answers of releases as a sample to learn from, and which of its layers the answers blame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from irrun.api import load
from irrun.checking.checker import examine
from irrun.diagnostics import IrrunError
from irrun.targets.facts import facts
from irrun.targets.releases import RELEASES
from irrun.targets.rules import releases_without, this_processor
from releases.learning import Row, Sample
from releases.probing import Answer

__all__ = ["Layers", "blamed", "layers", "sample"]

_NAMES: Final = re.compile(
    r"friendly_name '([^']+)'|with name '([^']+)'|(?:name|node): (\S+)|::\w+ (\S+) \(", re.IGNORECASE
)
_TYPES: Final = re.compile(
    r"'?v?[a-z]*\d*::(\w+) |(\w+) (?:node|layer|operation) with name|of type: (\w+)|layer (\w+) ", re.IGNORECASE
)
"""How messages of OpenVINO name a layer, and its type."""


class Layers(NamedTuple):
    """The layers of a model as rows, their types and names, and the releases that lack an operation of the model."""

    rows: Sequence[Row]
    names: Sequence[tuple[str, str]]
    lacking: np.ndarray


def layers(model: Path) -> Layers:
    """Return the layers of a model, or one row that says why irrun cannot read it.

    Each layer has the sentences about this processor too.
    """
    rows: list[Row] = []
    names: list[tuple[str, str]] = []
    lacking = np.zeros(len(RELEASES), bool)
    try:
        parsed = load(model)
        for fact in facts(parsed, *examine(parsed)):
            rows.append(Row(fact.operations, fact.sentences | this_processor(), fact.blocks))
            names.append((fact.layer.type, fact.layer.name) if fact.layer else ("", ""))
            if fact.layer is not None:
                lacking |= np.isin(RELEASES, releases_without(fact.layer))
    except IrrunError as error:
        rows = [Row((), frozenset(f"irrun reports {d.code}" for d in error.diagnostics), True)]
        names = [("", "")]
    return Layers(rows, names, lacking)


def sample(of: Layers, answers: Sequence[Answer | None]) -> Sample:
    """Return a model as layers and answers. An answer between two that agree is taken to agree with them."""
    at = blamed(of.names, [answer.message for answer in answers if answer is not None and answer.stage])
    rows = [row._replace(blamed=number in at) for number, row in enumerate(of.rows)]
    codes = np.array([-1 if answer is None else bool(answer.stage) for answer in answers])
    asked = codes >= 0
    known = np.flatnonzero(asked)
    for first, last in pairwise(known):
        if codes[first] == codes[last]:
            codes[first:last] = codes[first]
    return Sample(rows, codes, of.lacking, asked)


def blamed(layers: Sequence[tuple[str, str]], messages: Iterable[str]) -> set[int]:
    """Return the numbers of the layers, given as type and name, that messages are about: all if one names no layer."""
    found: set[int] = set()
    for message in messages:
        of = set(_named(layers, message))
        if not of:
            return {*range(len(layers))}
        found |= of
    return found


def _named(layers: Sequence[tuple[str, str]], message: str) -> Iterator[int]:
    if empty := re.search(r"(\S+?)(?:\.\d+)? has zero dimension", message):
        yield from (at for at, (type, name) in enumerate(layers) if type == "Result" or name == empty[1])
        return
    names = {name for groups in _NAMES.findall(message) for name in groups if name}
    types = {type.lower() for groups in _TYPES.findall(message) for type in groups if type}
    named = [at for at, (_, name) in enumerate(layers) if name and name in names]
    if not named:  # the plugin names a layer of its own after those that it stands between
        named = [at for at, (_, name) in enumerate(layers) if name and any(n.startswith(f"{name}_") for n in names)]
    yield from named or (at for at, (type, _) in enumerate(layers) if type and type.lower() in types)
