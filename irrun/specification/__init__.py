"""What the pages of OpenVINO's specification say, word for word: one file for each version of an operation.

``Divide-1.toml`` quotes the sentences that the rules and the tests of Divide-1 rest on. The conformance suite judges an
engine only where there is such a sentence. An example:

    commit = "74959490cbbd8eafd8bf4f52407507f3129f3557"
    values = "*Divide* performs division operation for the input tensors *a* and *b* using the formula below"

    [types]
    T = { says = "*T*: any numeric type.", types = "numeric" }

    [clauses]
    C1 = ["*none* - no auto-broadcasting is allowed, all input shapes must match"]

    [rows]
    floor-i32 = "true - floor division"

    [undefined]
    zero-divisor = "The result of division by zero is undefined."

    [silent]
    C3 = "The page does not limit axis from below."

``…`` in a quotation stands for words that are left out. Keys of ``clauses`` are labels of the operation's clauses, or
codes of general rules (``IR205``: the number of inputs, ``IR302``: inputs of one type). Keys of ``rows`` are rows of
the tables in ``tests/ops`` that rest on another sentence than ``values``. ``undefined`` names behaviours
(``irrun.specification.undefined``) that a page leaves open, though it may not use this word. ``silent`` gives the
reason why irrun has a clause, or computes or refuses the model of a row, without a sentence.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

__all__ = ["FOLDER", "Types", "Wording", "parsed", "wording"]

FOLDER: Final = Path(__file__).parent
"""The folder of the files."""


@dataclass(frozen=True, slots=True)
class Types:
    """The element types that a page allows: its sentence, and the types as ``irrun.types.type_set`` reads them.

    ``also`` are further types that irrun accepts: networks use them, or the page leaves them to the device ("any
    supported type") and OpenVINO refuses them. No verdict rests on them.
    """

    says: str
    types: str
    also: str = ""


@dataclass(frozen=True, slots=True)
class Wording:
    """The sentences of the page of one version of an operation. The docstring of this module explains each field."""

    commit: str
    """The commit of OpenVINO's repository in which the page has the sentences."""
    values: str
    types: Mapping[str, Types]
    """By type variable of the operation (``T``)."""
    clauses: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, str]
    undefined: Mapping[str, str]
    silent: Mapping[str, str]

    def sentences(self) -> tuple[str, ...]:
        """Return all sentences that the file quotes."""
        clauses = [sentence for sentences in self.clauses.values() for sentence in sentences]
        types = [types.says for types in self.types.values()]
        return (self.values, *types, *clauses, *self.rows.values(), *self.undefined.values())


@cache
def wording(name: str) -> Wording | None:
    """Return the sentences about a version of an operation (``Divide-1``), or None if irrun quotes none.

    Raises ValueError, which names the file, if the file is wrong.
    """
    path = FOLDER / f"{name}.toml"
    return parsed(name, path.read_text("utf-8")) if path.exists() else None


def parsed(name: str, text: str) -> Wording:
    """Return the sentences in the text of a file. Raises ValueError if a field is missing, unknown or wrong."""
    try:
        fields: dict[str, Any] = tomllib.loads(text)
        found = Wording(
            commit=fields.pop("commit"),
            values=fields.pop("values"),
            types={variable: Types(**types) for variable, types in fields.pop("types", {}).items()},
            clauses={label: tuple(sentences) for label, sentences in fields.pop("clauses", {}).items()},
            rows=fields.pop("rows", {}),
            undefined=fields.pop("undefined", {}),
            silent=fields.pop("silent", {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name}.toml: {error}") from None
    if fields:
        raise ValueError(f"{name}.toml: there is no field {', '.join(fields)}")
    texts = [found.commit, *found.sentences(), *found.silent.values()]
    if not all(isinstance(text, str) and text for text in texts):
        raise ValueError(f"{name}.toml: each sentence and reason is a text")
    if not all(found.clauses.values()):
        raise ValueError(f"{name}.toml: a clause without a sentence belongs to silent")
    if both := found.clauses.keys() & found.silent.keys():
        raise ValueError(f"{name}.toml: {', '.join(sorted(both))} has sentences, and is silent")
    return found
