"""Explanations: the lines that describe a disagreement, and the patterns that recognise them."""

from __future__ import annotations

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
    for name, shown in (("Bucketize-3", "=[2.5, 1.0]"), ("PReLU-1", "")):
        layer = Node("layer", versions()[name], {}, [Ref(0), Ref(1)])
        line = described(Graph(1, [*nodes, layer], [Ref(2)], [{}]), Disagreement("engine", "values", "call 1: …"))
        assert f", c:f32[2]{shown}) " in line


@pytest.mark.parametrize(
    ("line", "name", "explaining", "other"),
    [
        ("values Bucketize-3 (p:f32[2], c:f32[3]=[{}]) {{}} -> 1", "buckets that are not sorted", "2.0, 1.0, 3.0", "1.0, 2.0, 2.0"),
        ("values EmbeddingSegmentsSum-3 (p:f32[4], c:i64[3], c:i64[3]=[{}], c:i64[]=[3]) {{}} -> 1", "segments that are not sorted", "2, 0, 2", "0, 2, 2"),
        ("values CTCLoss-4 (p:f32[1,2,3], c:i64[1]=[2], c:i64[1,2]=[{}], c:i64[1]=[1]) {{ctc_merge_repeated=true}} -> 1", "a label that is the blank", "2, 0", "1, 0"),
        ("values CTCLoss-4 (p:f32[1,2,3], c:i64[1]=[2], c:i64[1,2]=[{}], c:i64[1]=[1], c:i64[]=[0]) {{ctc_merge_repeated=true}} -> 1", "a label that is the blank", "1, 0", "2, 1"),
        ("crash ExperimentalDetectronGenerateProposalsSingleImage-6 (p:f32[3]=[{}], p:f32[1,4]) {{}} -> 2", "an image without a whole pixel", "9.0, 0.5, 1.0", "9.0, 9.0, 0.5"),
    ],
)  # fmt: skip
def test_explanations_look_at_numbers(line: str, name: str, explaining: str, other: str) -> None:
    for numbers, expected in ((explaining, name), (other, "")):
        assert (
            explained(line.format(numbers) + " static | call 1: output 0 has 1.0 at [0], not 2.0 (1 of 2)") == expected
        )


def test_explanations_name_what_there_is() -> None:
    names = {known.name for known in explanations()}
    for departure in departures():
        assert {*departure.before} <= names
        assert {pattern.where for pattern in departure.recognised} <= {"", *CONDITIONS}
    assert {reason.where for reason in (*FIRST, *LAST)} <= {"", *CONDITIONS}
    assert all(" " in reason.name for reason in (*FIRST, *LAST))
    for known in explanations():
        assert not known.explains("values Tanh-1 (p:f32[2,3]) {} -> 1 static | call 1: output 0 has 1, not 2")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("values Gather-7 (p:f16[0,2], p:i32[2]=[0, -1], p:i64[1]=[0]) {} -> 1 dynamic", "gather_negative"),
        ("crash Gather-8 (p:boolean[6,2], p:u64[1]=[0], p:i64[1]=[0]) {} -> 1 static empty", "gather_empty"),
        ("crash Proposal-4 (p:f32[0]) {post_nms_topn=2} -> 1 static empty", "proposal_rows"),
        ("values Interpolate-1 (p:i32[2,2], c:i64[1]) {pads_begin=1, antialias=true} -> 1 static", "interpolate_pads"),
        ("values Interpolate-4 (p:i32[2,2], c:i64[1]) {pads_begin=1, antialias=true} -> 1 static", "interpolate_u8"),
        ("values Interpolate-4 (p:f32[2,2], c:i64[1]) {antialias=true} -> 1 static", "interpolate_antialias"),
        ("refusal LRN-1 (p:f32[1]) {} -> 1 static | LRN node x doesn't support 'data' input with rank: 1, unsupported type", "lrn_1d"),
        ("values Tile-1 (p:i64[0,2], p:i64[0,2]) {} -> 1 static empty", "a dim of 0"),
    ],
)  # fmt: skip
def test_the_first_of_several_explanations(line: str, name: str) -> None:
    """Departures that are tried before others, a general one after them, and reasons last."""
    assert explained(line if "|" in line else f"{line} | call 1: output 0 has 1.0 at [0], not 2.0 (1 of 2)") == name


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
