"""What networks write: what most graphs keep to, and what converters write together."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from irrun.growing import Draft, Graph, Grower, Node, Port, Solver, versions
from irrun.growing.habits import usual_types, written


@pytest.mark.parametrize(
    ("name", "variable", "usual", "never"),
    [
        ("Convolution-1", "T", "f32", {"i64", "u16", "boolean"}),
        ("Gather-8", "T_AXIS", "i64", {"i8", "u16", "f32"}),
        ("LogicalAnd-1", "T", "boolean", {"f32"}),
        ("StringTensorUnpack-15", "string", "string", {"f32"}),
        ("Add-1", "T", "f32", {"u16", "f8e5m2", "boolean"}),
        ("ReverseSequence-1", "T_LENGTHS", "i64", {"f32"}),
    ],
)
def test_usual_types(name: str, variable: str, usual: str, never: set[str]) -> None:
    """The most frequent type of an input, and types that the page may allow and networks do not have."""
    types = Counter(usual_types(versions()[name], variable))
    assert types.most_common(1)[0][0] == usual
    assert not never & types.keys()


def test_a_layer_is_written_with_all_attributes() -> None:
    draft = Draft(versions()["MaxPool-8"], {"kernel": "2,2", "strides": "1", "pads_begin": "3,0,1", "pads_end": ""},
                  [Port("f32", (1, 1, 4, 4))])  # fmt: skip
    assert written(draft).attributes == {
        "kernel": "2,2", "strides": "1,1", "pads_begin": "1,0", "pads_end": "0,0", "dilations": "1,1",
        "auto_pad": "explicit", "rounding_type": "floor", "index_element_type": "i64", "axis": "0",
    }  # fmt: skip


def test_masks_are_as_long_as_begin() -> None:
    bounds = Port("i64", (3,), np.zeros(3, np.int64))
    draft = Draft(versions()["StridedSlice-1"], {"begin_mask": "1", "end_mask": "0,1,1,0"},
                  [Port("f32", (2, 2, 2)), bounds, bounds])  # fmt: skip
    assert set(written(draft).attributes.values()) == {"1,0,0", "0,1,1", "0,0,0"}


def test_attributes_of_no_page_are_left_out() -> None:
    pooled = {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1.0", "output_size": "2,2"}
    made = written(Draft(versions()["ROIPooling-2"], pooled))
    assert made.attributes == {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1.0", "method": "max"}
    axis = "auto_broadcast.auto_broadcast_axis"
    assert axis not in written(Draft(versions()["Add-1"], {axis: "1"})).attributes


def test_an_unusual_layer_may_have_any_type() -> None:
    solver, cls = Solver(random.Random(5)), versions()["Add-1"]
    found = {solver.solve(cls, usual=usual).ports[0].type for usual in (False,) * 60}  # type: ignore[union-attr]
    assert found - set(usual_types(cls, "T"))
    assert {solver.solve(cls).ports[0].type for _ in range(60)} <= set(usual_types(cls, "T"))  # type: ignore[union-attr]


def test_graphs_for_engines_keep_to_habits() -> None:
    """Few of them leave out attributes that have a default; every second graph for irrun alone does."""
    shares = []
    for for_engine in (True, False):
        grower = Grower(3, for_engine=for_engine)
        layers = [node for number in range(40) for node in grower.grow_declared(number).nodes if node.cls]
        short = [node for node in layers if len(node.attributes) < len(node.cls.attributes) - 1]  # type: ignore[union-attr]
        shares.append(len(short) / len(layers))
    assert 2 * shares[0] < shares[1]


# ---------------------------------------------------------------------------------------------
# what is drawn together

GRAPHS = 400
LEAST = 8
"""The least number of 400 chains that have a group of layers."""


def test_what_converters_write_together_is_drawn_together() -> None:
    grower, found = Grower(1), Counter[str]()
    for number in range(GRAPHS):
        found.update(set(_groups(grower.grow_chain(number))))
    assert {name: found[name] for name in GROUPS if found[name] < LEAST} == {}


GROUPS = (
    "element-wise before Convolution", "Convert, Subtract, Multiply before MatMul", "Convert, Multiply before MatMul",
    "ShapeOf, Gather, Concat, Reshape", "new axes with shrunk ones", "a reduction before FakeQuantize",
    "a product of length 0", "dynamic beside static",
)  # fmt: skip
_PATHS = {
    ("ShapeOf", "Gather", "Concat", "Reshape"): GROUPS[3],
    ("Convert", "Subtract", "Multiply", "MatMul"): GROUPS[1],
    ("Convert", "Multiply", "MatMul"): GROUPS[2],
    **{(kind, "Convolution"): GROUPS[0] for kind in ("Add", "Multiply", "Subtract")},
    **{(kind, "FakeQuantize"): GROUPS[5] for kind in ("ReduceMean", "ReduceSum", "ReduceMax")},
}


def _groups(graph: Graph) -> Iterator[str]:
    """Yield the groups of layers that a graph has."""
    for node in graph.nodes:
        for path, name in _PATHS.items():
            if _ends(graph, node, path):
                yield name
        if node.cls is None:
            continue
        inputs = [graph.nodes[ref.node] for ref in node.inputs]
        if node.cls.type == "StridedSlice" and all(
            "1" in node.attributes[f"{kind}_axis_mask"] for kind in ("new", "shrink")
        ):
            yield GROUPS[4]
        if node.cls.type == "MatMul" and any(source.kind == "constant" and 0 in source.shape for source in inputs):
            yield GROUPS[6]
    opens = {bool(graph.open.get(number)) for number in graph.parameters}
    if len(opens) == 2:
        yield GROUPS[7]


def _ends(graph: Graph, node: Node, path: tuple[str, ...]) -> bool:
    """Return whether layers of these types lead to a node, which is of the last one."""
    if node.cls is None or node.cls.type != path[-1]:
        return False
    return len(path) == 1 or any(_ends(graph, graph.nodes[ref.node], path[:-1]) for ref in node.inputs)
