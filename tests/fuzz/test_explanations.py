"""Explanations: the lines that describe a disagreement, and the patterns that recognise them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from irrun.departures import Departure, Pattern, departures
from irrun.fuzz import (
    Disagreement,
    described,
    explained,
    explanations,
)
from irrun.fuzz.known import CONDITIONS, ordered
from irrun.fuzz.reasons import FIRST, LAST, Reason
from irrun.growing import Graph, Node, Ref, versions


def test_a_description_shows_what_explanations_look_for() -> None:
    cls = versions()["Gather-8"]
    nodes = [
        Node("parameter", type="f32", shape=(0, 2)),
        Node("constant", type="i64", shape=(1,), data=np.array([3])),
        Node("parameter", type="i64", shape=(), data=np.array(0)),
        Node("layer", cls, {"batch_dims": "0"}, [Ref(0), Ref(1), Ref(2)]),
    ]
    graph = Graph(1, nodes, [Ref(3)], [{}])
    line = described(graph, Disagreement("engine", "crash", "it was ended by SIGFPE"))
    inputs = "p:f32[0,2], c:i64[1]=[3], p:i64[]=[0]"
    assert line == f"crash Gather-8 ({inputs}) {{batch_dims=0}} -> 1 static empty | it was ended by SIGFPE"
    assert explained(line) == "gather_no_rows"


def test_a_description_shows_the_floats_that_explanations_look_at() -> None:
    nodes = [
        Node("parameter", type="f32", shape=(1,), data=np.zeros(1, np.float32)),
        Node("constant", type="f32", shape=(2,), data=np.array([2.5, 1], np.float32)),
    ]
    in_full = "ExperimentalDetectronGenerateProposalsSingleImage-6"
    for name, shown in ((in_full, "=[2.5, 1.0]"), ("PReLU-1", "")):
        layer = Node("layer", versions()[name], {}, [Ref(0), Ref(1)])
        line = described(Graph(1, [*nodes, layer], [Ref(2)], [{}]), Disagreement("engine", "crash", "it was ended"))
        assert f", c:f32[2]{shown}) " in line


@pytest.mark.parametrize(
    ("line", "name", "explaining", "other"),
    [
        ("crash ExperimentalDetectronGenerateProposalsSingleImage-6 (p:f32[3]=[{}], p:f32[1,4]) {{}} -> 2", "an image without a whole pixel", "9.0, 0.5, 1.0", "9.0, 9.0, 0.5"),
    ],
)  # fmt: skip
def test_explanations_look_at_numbers(line: str, name: str, explaining: str, other: str) -> None:
    for numbers, expected in ((explaining, name), (other, "")):
        assert explained(line.format(numbers) + " static | it was ended by SIGSEGV") == expected


def test_explanations_name_what_there_is() -> None:
    names = {known.name for known in explanations()}
    for departure in departures():
        assert {*departure.before} <= names
        assert {pattern.where for pattern in departure.recognised} <= {"", *CONDITIONS}
    assert {reason.where for reason in (*FIRST, *LAST)} <= {"", *CONDITIONS}
    assert all(" " in reason.name for reason in (*FIRST, *LAST))
    for known in explanations():
        assert not known.explains("values Tanh-1 (p:f32[2,3]) {} -> 1 static | call 1: output 0 has 1, not 2")


def test_no_pattern_explains_values() -> None:
    """What explains values computes them: a prediction of a departure, or a behaviour that a page leaves open."""
    for known in explanations():
        kind = re.match(r"\^(\(\?:|\()?([a-z|]+)", known.pattern)
        assert kind is None or "values" not in kind[2].split("|"), known


def test_no_pattern_explains_every_layer_with_an_empty_tensor() -> None:
    """Nor every one with NaN, or every one that crashes."""
    for kind, said in (("crash", "it was ended by SIGSEGV"), ("refusal", "an internal error"), ("hang", "no answer")):
        for words in ("static empty", "dynamic empty", "static nonfinite", "dynamic nonfinite empty"):
            line = f"{kind} Tanh-1 (p:f32[0,3]) {{}} -> 1 {words} | {said}"
            assert not explained(line), line


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("crash Gather-8 (p:boolean[6,2], p:u64[0], p:i64[1]=[0]) {} -> 1 static empty", "gather_empty"),
        ("crash Gather-8 (p:boolean[0,2], p:u64[0], p:i64[1]=[0]) {} -> 1 static empty", "gather_no_rows"),
        ("crash Proposal-4 (p:f32[0]) {post_nms_topn=2} -> 1 static empty", "proposal_rows"),
        ("refusal LRN-1 (p:f32[1]) {} -> 1 static | LRN node x doesn't support 'data' input with rank: 1, unsupported type", "lrn_1d"),
        ("refusal Tile-1 (p:i64[0,2]) {} -> 1 static empty | could not create a reorder primitive", "a dim of 0"),
    ],
)  # fmt: skip
def test_the_first_of_several_explanations(line: str, name: str) -> None:
    """Departures that are tried before others, a general one after them, and reasons last."""
    assert explained(line if "|" in line else f"{line} | it was ended by SIGSEGV") == name


def test_the_order_of_explanations() -> None:
    """The general departure is last though its name is first; a departure may come before reasons."""

    def departure(name: str, before: Sequence[str], general: bool) -> Departure:
        return replace(departures()[0], name=name, before=tuple(before), general=general, recognised=(Pattern("x"),))

    known = [
        departure("a", [], True),
        departure("b", ["one"], False),
        departure("d", [], False),
        departure("c", ["b"], False),
    ]
    found = ordered(known, [Reason("one", "x"), Reason("two", "x")], [Reason("three", "x")])
    assert [explanation.name for explanation in found] == ["c", "b", "one", "two", "d", "a", "three"]
