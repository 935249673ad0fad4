"""The passes of the planner: their table, and the flow of steps that they rewrite."""

from __future__ import annotations

import re

import irrun
from irrun import build as b
from irrun.fast import passes
from irrun.planning.flow import Flow
from irrun.planning.plan import PASSES
from places import ROOT


def test_the_architecture_page_quotes_the_table() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    (quoted,) = re.findall(r"The passes of the planner \(`planning/plan\.py`\), in order: (.*?)\.\n", text, re.DOTALL)
    assert re.findall(r"`(\w+)`", quoted) == [rewrite.__name__ for rewrite in PASSES]


def test_the_page_of_compiled_kernels_quotes_their_table() -> None:
    text = (ROOT / "docs" / "compiled-kernels.md").read_text("utf-8")
    (quoted,) = re.findall(r"passes of\s`fast/passes/__init__\.py`, in order: (.*?)\.\n", text, re.DOTALL)
    assert re.findall(r"`(\w+)`", quoted) == [rewrite.__name__ for rewrite in passes.PASSES]


def test_each_pass_has_a_verb_and_says_what_it_does() -> None:
    for rewrite in (*PASSES, *passes.PASSES):
        assert rewrite.__doc__
        verb, *_ = rewrite.__name__.split("_")
        assert verb in {"append", "drop", "gather", "recognise", "to", "absorb", "chain", "join", "merge", "fuse"}


def test_definitions_and_uses() -> None:
    x = b.parameter([2, 3], "f32", name="x")
    y = b.ReLU(x, name="y")
    total = b.Add(y, y, name="total")
    model = b.model({"total": total, "y": y, "z": b.Exp(total, name="z")})
    plan = irrun.compile(model, exact=True).plan
    flow = Flow(plan.steps, plan.results)
    place = {step.layer.name: position for position, step in enumerate(flow.steps)}
    slot = {name: flow.steps[position].writes[0] for name, position in place.items()}
    (given,) = plan.parameters
    assert flow.end == 3
    assert flow.made == {slot[name]: place[name] for name in place}
    # a step that reads a slot twice is a reader twice; the end reads the outputs of the model
    assert flow.readers[slot["y"]] == [place["total"], place["total"], flow.end]
    assert flow.readers[slot["total"]] == [place["z"], flow.end]
    assert flow.only_reader(given) == place["y"]
    assert flow.only_reader(slot["total"]) is None
    assert flow.only_reader(slot["z"]) is None
    assert flow.maker(given) is None
    assert flow.maker(slot["y"]) is flow.maker(slot["y"], "ReLU", "Exp") is flow.steps[place["y"]]
    assert flow.maker(slot["y"], "Exp") is None
