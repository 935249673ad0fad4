"""The solver: it finds layers that an operation accepts, from its declaration alone."""

from __future__ import annotations

import random

import numpy as np
import pytest

from irrun.growing import Draft, Port, Solver, versions
from irrun.growing.drafts import STRUCTURE, failure, random_contents
from irrun.inference.layer import infer
from irrun.opdef import Site

PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_every_version_is_solved_from_its_declaration(part: int) -> None:
    """With six seeds at most: a few versions have conditions that one climb may miss."""
    for name in [name for name, cls in versions().items() if cls.type not in STRUCTURE][part::PARTS]:
        drafts = (Solver(random.Random(seed)).solve(versions()[name]) for seed in range(6))
        draft = next((draft for draft in drafts if draft is not None), None)
        assert draft is not None, name
        assert failure(draft) == "", name


def test_a_draft_is_what_the_operation_accepts() -> None:
    solver = Solver(random.Random(7))
    for _ in range(20):
        draft = solver.solve(versions()["LSTMCell-4"])
        assert draft is not None
        texts = {a.name: a.parse for a in draft.cls.attributes.values()}
        op = draft.cls(**{key: texts[a.name](draft.attributes[a.name]) for key, a in draft.cls.attributes.items()
                          if a.name in draft.attributes})  # fmt: skip
        hidden = int(draft.attributes["hidden_size"])
        assert infer(op, Site(2), [port.value() for port in draft.ports], {})[0].shape[1].value == hidden
        assert draft.ports[3].shape == (4 * hidden, draft.ports[0].shape[1])


def test_a_layer_reads_a_tensor_that_is_there() -> None:
    solver, host = Solver(random.Random(3)), Port("f16", (2, 5, 3), fixed=True)
    draft = solver.solve(versions()["MatMul-1"], host)
    assert draft is not None
    assert (draft.ports[0].shape, {port.type for port in draft.ports}) == ((2, 5, 3), {"f16"})
    assert solver.solve(versions()["Convolution-1"], Port("f32", (2, 3), fixed=True)) is None


def test_a_tensor_that_an_operation_does_not_take_costs_no_drafts() -> None:
    """Because of its type, or because other tensors of its rank were tried in vain."""
    solver, cls = Solver(random.Random(3)), versions()["Convolution-1"]
    assert solver.solve(cls, Port("boolean", (1, 2, 3, 4), fixed=True)) is None
    assert solver.tried == 0
    for _ in range(2):
        assert solver.solve(cls, Port("f32", (2, 3), fixed=True)) is None
    tried = solver.tried
    assert solver.solve(cls, Port("f32", (4, 5), fixed=True)) is None
    assert solver.tried == tried > 0


def test_what_was_solved_once_is_solved_again() -> None:
    solver, cls = Solver(random.Random(2)), versions()["LSTMSequence-5"]
    first = solver.solve(cls)
    assert first is not None
    before = solver.tried
    for _ in range(20):
        draft = solver.solve(cls)
        assert draft is not None
        assert failure(draft) == ""
    assert solver.tried - before < 20 * 400


@pytest.mark.parametrize(
    ("name", "attributes", "position", "domain"),
    [
        ("ROIPooling-2", {"pooled_h": "2", "pooled_w": "2", "spatial_scale": "1.0"}, 1, "whole"),
        ("GatherTree-1", {}, 0, "whole"),
    ],
)
def test_a_domain_makes_contents_that_a_kernel_accepts(
    name: str, attributes: dict[str, str], position: int, domain: str
) -> None:
    """The batch index of a region is no negative number, and the entries of GatherTree are whole."""
    shapes = {"ROIPooling-2": [(2, 3, 4, 4), (5, 5)], "GatherTree-1": [(3, 4, 5), (3, 4, 5), (4,), ()]}[name]
    draft = Draft(versions()[name], attributes, [Port("f32", shape) for shape in shapes])
    assert failure(draft) != ""
    for port in draft.ports[position:]:
        port.domain = domain
    assert failure(draft) == ""


def test_an_empty_input_of_huge_dims() -> None:
    """numpy makes no array of the shape [0, 2**62]."""
    assert failure(Draft(versions()["Abs-1"], {}, [Port("f32", (0, 1 << 62))])) == "too large"


def test_an_output_of_huge_dims() -> None:
    """A kernel does not begin to compute 2**45 rows."""
    sizes = Port("i64", (2,), np.array([1 << 45, 3]))
    attributes = {"mode": "cubic", "shape_calculation_mode": "sizes"}
    assert failure(Draft(versions()["Interpolate-11"], attributes, [Port("f32", (2, 3)), sizes])) == "too large"


def test_contents_of_each_domain() -> None:
    numbers = np.random.default_rng(1)
    whole = random_contents(Port("f32", (500,), domain="whole"), numbers)
    assert (whole.dtype, set(whole.tolist())) == (np.float32, {0.0, 1.0})
    assert random_contents(Port("f16", (500,), domain="positive"), numbers).min() > 0
    assert set(random_contents(Port("i64", (500,), domain="positive"), numbers).tolist()) == {1, 2, 3}
    assert random_contents(Port("f32", (500,)), numbers).min() < 0


def test_drafts_copy_apart() -> None:
    draft = Draft(versions()["Tile-1"], {"a": "1"}, [Port("f32", (2,))])
    copy = draft.copy()
    copy.attributes["a"] = "2"
    copy.ports[0].shape = (3,)
    assert (draft.attributes, draft.ports[0].shape) == ({"a": "1"}, (2,))
