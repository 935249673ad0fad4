"""``Model.graph``: a graph of networkx that carries layers, operations, types and shapes."""

from pathlib import Path

import networkx as nx
import pytest

import irrun
from irrun.base.source import Source
from irrun.ir.parse import parse
from irrun.types import ELEMENT_TYPES
from nets import Net
from places import INVALID, SAMPLES


def test_nodes_carry_layers_operations_types_and_shapes() -> None:
    model = irrun.read_model(SAMPLES / "convnet.xml")
    (pool,) = [data for _, data in model.graph.nodes(data=True) if data["layer"].name == "block1/pool"]
    assert (pool["operation"].type, pool["operation"].since, pool["operation"].kernel) == ("MaxPool", 8, (2, 2))
    assert [str(shape) for shape in pool["shapes"]] == ["[1,8,14,14]", "[1,8,14,14]"]
    assert pool["types"] == (ELEMENT_TYPES["f32"], ELEMENT_TYPES["i64"])
    assert set(model.graph) == set(model.layers)
    (result,) = [data for _, data in model.graph.nodes(data=True) if data["layer"].type == "Result"]
    assert result["shapes"] == ()


def test_edges_carry_ports_types_and_shapes() -> None:
    model = irrun.read_model(SAMPLES / "wrong_dim.xml")
    shapes = {
        (model.layers[a].name, model.layers[b].type): (str(edge["type"]), str(edge["shape"]))
        for a, b, edge in model.graph.edges(data=True)
    }
    # the file declares 48 for a dim that is 50
    assert shapes["broadcast", "Result"] == ("f32", "[1,16,50,50]")
    assert shapes["target_shape", "Broadcast"] == ("i64", "[4]")
    for a, b, edge in model.graph.edges(data=True):
        assert edge["from_port"] in [port.id for port in model.layers[a].outputs]
        assert edge["to_port"] in [port.id for port in model.layers[b].inputs]


def test_algorithms_of_networkx_answer_questions() -> None:
    model = irrun.read_model(SAMPLES / "convnet.xml")
    graph = model.graph
    ids = {layer.name: id for id, layer in model.layers.items()}
    assert nx.is_directed_acyclic_graph(graph)
    path = nx.shortest_path(graph, ids["image"], ids["logits"])
    names = [model.layers[id].name for id in path]
    assert (names[0], names[-1]) == ("image", "logits")
    assert "block1/pool" in names
    dominators = nx.immediate_dominators(graph, ids["image"])
    assert model.layers[dominators[ids["flatten"]]].name == "block2/pool"
    assert ids["block1/weights"] in nx.ancestors(graph, ids["flatten"])


def test_it_cannot_be_changed_but_its_copy_can() -> None:
    graph = irrun.read_model(SAMPLES / "elementwise.xml").graph
    with pytest.raises(nx.NetworkXError, match=r"(?i)frozen"):
        graph.remove_node(0)
    copy = graph.copy()
    copy.remove_node(0)
    assert len(copy) == len(graph) - 1


def test_broken_models_have_a_graph() -> None:
    """A cycle is not inferred: the declared types and shapes stand."""
    path = INVALID / "cycle_of_two.xml"
    model = parse(Source(str(path), path.read_bytes())).model
    assert len(model.cycle()) == 2
    assert len(nx.find_cycle(model.graph)) == 2
    for id, layer in model.layers.items():
        assert len(model.graph.nodes[id]["shapes"]) == len(layer.outputs)


def test_operations_that_are_unknown(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(net.add("NoSuchOperation", [x], [("FP32", "2")]))
    graph = irrun.read_model(net.save(tmp_path)).graph
    (node,) = [data for _, data in graph.nodes(data=True) if data["layer"].type == "NoSuchOperation"]
    assert node["operation"] is None
    assert (str(node["types"][0]), str(node["shapes"][0])) == ("f32", "[2]")


def test_what_irrun_asks_needs_no_inference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = irrun.read_model(SAMPLES / "convnet.xml")
    monkeypatch.setitem(model.__dict__, "annotate", lambda *_: pytest.fail("inferred"))
    assert model.cycle() == ()
    assert "layer" in model.links.nodes[0]
    assert "shapes" not in model.links.nodes[0]
