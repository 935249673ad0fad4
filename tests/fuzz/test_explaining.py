"""What is judged again after a layer is explained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from conformance.in_process import InProcess
from irrun.engines import Failure, Output, Outputs
from irrun.fuzz import Verdict, described, explain, explaining, judge
from irrun.growing import Graph, Node, Ref, versions


def test_a_fault_behind_an_explained_layer_whose_outputs_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine gives Tanh another shape, which Reshape refuses; irrun's values take its place.

    Abs is wrong behind Reshape only.
    """
    named = explaining._named

    def tanh_is_explained(verdict: Verdict) -> Verdict:
        is_tanh = "Tanh-1 (p" in described(verdict.graph, verdict.disagreement)
        return replace(verdict, names=frozenset(["tanh"])) if is_tanh else named(verdict)

    class TwoFaults(InProcess):
        def infer(self, *arguments: Any, **more: Any) -> Outputs | Failure:
            outputs = super().infer(*arguments, **more)
            assert self.model is not None
            assert isinstance(outputs, Outputs)
            types = [layer.type for layer in self.model.layers.values()]
            (output,) = outputs.outputs
            array = output.array * np.float32(2) if {"Abs", "Reshape"} <= {*types} else output.array
            array = array[:1] if types[-2] == "Tanh" else array
            return Outputs((Output(output.names, output.type, array),), 0)

    monkeypatch.setattr(explaining, "_named", tanh_is_explained)
    shape = Node("constant", type="i64", shape=(1,), data=np.array([6]))
    reshape = Node("layer", versions()["Reshape-1"], {"special_zero": "false"}, [Ref(1), Ref(2)])
    tanh = Node("layer", versions()["Tanh-1"], {}, [Ref(0)])
    last = Node("layer", versions()["Abs-1"], {}, [Ref(3)])
    nodes = [Node("parameter", type="f32", shape=(2, 3)), tanh, shape, reshape, last]
    graph, engine = Graph(1, nodes, [Ref(4)], [{}]), TwoFaults(exact=True)
    found = judge(graph, engine)
    assert found is not None
    verdict = explain(graph, found, engine)
    assert not verdict.names
    assert described(verdict.graph, verdict.disagreement).startswith("values Reshape-1 (")
