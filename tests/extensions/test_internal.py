"""What holds for every internal operation: its page, its revisions and its clauses."""

from __future__ import annotations

import re

import pytest

from irrun.inference.layer import infer
from irrun.opdef import (
    RELEASES,
    Input,
    Op,
    Revision,
    Site,
    Value,
    all_ops,
    arity,
    attr,
    labels,
    ports,
    released,
    resolve,
)
from irrun.types import ELEMENT_TYPES, PartialShape

SOURCES = ("GatherMatmul", "GatherMatmulCompressed")
"""The operations that have no page."""
OURS = [cls for cls in all_ops() if cls.__module__.startswith("irrun.extensions.internal.")]


@pytest.mark.parametrize("cls", OURS, ids=lambda cls: cls.type)
def test_declaration(cls: type[Op]) -> None:
    assert cls.spec.startswith("internal/") or cls.type in SOURCES
    assert cls.revisions
    for revision in cls.revisions:
        assert re.fullmatch(r"([0-9a-f]{40})?", revision.commit)
        assert re.fullmatch(r"(20\d\d\.\d)?", revision.release)
        assert revision.commit or revision.release
        assert {*revision.without, *revision.defaults} <= cls.attributes.keys()
        assert not any(cls.attributes[name].required for name in revision.without)
    assert arity(cls.revisions[-1].inputs or cls.inputs) == arity(cls.inputs)
    assert [*cls.updates] == [port.name for port in cls.inputs if port.name in cls.updates]
    assert cls.pure != bool(cls.updates)
    assert [*labels(cls)] == [f"C{number}" for number in range(1, len(labels(cls)) + 1)]
    assert resolve(cls.type, None, "extension") is cls


def test_releases() -> None:
    """The rows that differ from neighbours by more than one release, by the page of the available operation sets."""
    assert {number: RELEASES[number] for number in (1, 2, 3, 13, 14, 15)} == {
        1: "2020.1", 2: "2020.2", 3: "2020.4", 13: "2023.2", 14: "2024.0", 15: "2024.5"
    }  # fmt: skip
    assert sorted(RELEASES.values(), key=lambda text: [int(n) for n in text.split(".")]) == [*RELEASES.values()]
    attention = resolve("ScaledDotProductAttention", None)
    assert attention is not None
    assert released(attention) == "2023.2"


class Revised(Op):
    """An operation whose input ``gate`` is new in its second revision, and whose default changes in the third.

    C1  ``data`` is not a scalar.
    """

    type, since, spec = "Revised", 1, ""
    limit = attr.float(default=1.0)
    inputs = ports(data="float", gate="float")
    revisions = (
        Revision("2025.1", "a" * 40, "the first page", inputs=(Input("data", "float"),), without=("limit",)),
        Revision("2025.2", "b" * 40, "adds gate", defaults={"limit": 0.5}),
        Revision("2025.3", "c" * 40, "changes limit"),
    )

    def infer(self, at: Site, data: Value, gate: Value | None = None) -> Value:
        return data


@pytest.mark.parametrize(
    ("inputs", "attributes", "releases", "limit"),
    [
        (1, (), ["2025.1"], None),
        (1, ("limit",), [], 1.0),
        (2, (), ["2025.3", "2025.2"], 1.0),
        (3, (), [], 1.0),
    ],
)
def test_a_layer_says_its_revision(
    inputs: int, attributes: tuple[str, ...], releases: list[str], limit: float | None
) -> None:
    fitting = Revised.fitted(inputs, attributes)
    assert [revision.release for revision in fitting] == releases
    assert Revised(fitting).__dict__["limit"] == limit
    assert len(Revised(fitting).inputs) == (1 if releases == ["2025.1"] else 2)
    assert Revised(fitting[1:] or fitting).__dict__["limit"] == (0.5 if len(fitting) == 2 else limit)


def test_the_shape_rule_gets_the_inputs_of_the_revision() -> None:
    data = Value(ELEMENT_TYPES["f32"], PartialShape.of((2,)))
    assert infer(Revised(Revised.fitted(1, ())), Site(), [data], {}) == (data,)
