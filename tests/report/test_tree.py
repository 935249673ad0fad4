"""Groups of layers by name, by topological order, and by body; what is visible at first."""

from __future__ import annotations

import random
from pathlib import Path

import networkx as nx
import pytest

from irrun.api import load
from irrun.report.entries import Entries
from irrun.report.tree import Tree
from irrun.report.untangle import ordered, untangled
from nets import Net
from reported_models import TWO, blocks, chain, shared_activation


def tree_of(net: Net, folder: Path) -> Tree:
    return Tree(Entries(load(net.save(folder)).model))


def members(tree: Tree, label: str) -> set[str]:
    """The names of the layers in the only group with a label, without those in groups inside it."""
    (group,) = [group for group in tree.groups if group.label == label]
    count = len(tree.entries)
    return {tree.entries[m].layer.name for m in group.members if m < count}


def labels(tree: Tree) -> set[str]:
    return {group.label for group in tree.groups}


def test_prefixes_are_groups(tmp_path: Path) -> None:
    """All layers but two are in ``/model/layers``, so that only its blocks are groups, and their parts."""
    tree = tree_of(blocks(3), tmp_path)
    assert labels(tree) == {"", "layers.0", "layers.1", "layers.2", "attn", "mlp"}
    (first,) = [g for g in tree.groups if g.label == "layers.0"]
    inner = [m for m in first.members if m >= len(tree.entries)]
    assert sorted(tree.groups[m - len(tree.entries)].label for m in inner) == ["attn", "mlp"]
    assert "/model/layers.0/Add" in members(tree, "layers.0")


def test_a_constant_is_in_the_group_of_its_consumer(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    weight = net.const("f32", "2", bytes(8), name="elsewhere/weight")
    converted = net.add("Convert", [weight], [TWO], name="Convert_17", destination_type="f32")
    x = chain(net, x, [f"a/{n}" for n in range(3)])
    x = net.add("Add", [x, converted], [TWO], name="a/add")
    x = chain(net, x, [f"b/{n}" for n in range(6)])
    net.result(x)
    tree = tree_of(net, tmp_path)
    assert {"elsewhere/weight", "Convert_17", "a/add"} <= members(tree, "a")
    assert [entry.layer.name for entry in tree.entries if tree.entries.hidden[entry.number]] == [
        "elsewhere/weight",
        "Convert_17",
    ]


def test_a_constant_that_feeds_a_result_is_visible(tmp_path: Path) -> None:
    net = Net()
    net.result(net.const("f32", "2", bytes(8), name="c"))
    assert not any(tree_of(net, tmp_path).entries.hidden)


@pytest.mark.parametrize("count", [81, 500, 7000])
def test_flat_names_become_runs_of_the_topological_order(count: int, tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    net.result(chain(net, x, [f"node_{number}" for number in range(count)]))
    tree = tree_of(net, tmp_path)
    assert all(len(group.members) <= 80 for group in tree.groups)
    order: list[int] = []
    waiting = [len(tree.entries)]
    while waiting:
        member = waiting.pop()
        if member >= len(tree.entries):
            waiting += reversed(tree.groups[member - len(tree.entries)].members)
        else:
            order.append(member)
    assert order == list(range(count + 2))  # each layer once, in the order of the chain


@pytest.mark.parametrize("most", [1, 10, 60, 1000])
def test_no_more_nodes_are_visible_at_first_than_asked_for(most: int, tmp_path: Path) -> None:
    tree = tree_of(blocks(40), tmp_path)
    opened = tree.opened(most)
    visible = list(tree.visible(opened))
    assert len(visible) <= max(most, len(tree.groups[0].members))
    shown = sum(not hidden for hidden in tree.entries.hidden)
    assert (len(visible) == shown) == (most == 1000)  # 322 layers: all of them only if so many may be visible


def test_every_layer_and_group_has_one_parent(tmp_path: Path) -> None:
    tree = tree_of(blocks(120), tmp_path)
    listed = sorted(member for group in tree.groups for member in group.members)
    assert listed == sorted({*range(len(tree.entries) + len(tree.groups))} - {len(tree.entries)})
    for number, group in enumerate(tree.groups):
        assert all(tree.parents[member] == len(tree.entries) + number for member in group.members)


def test_hostile_names(tmp_path: Path) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="/" * 5000)
    net.result(chain(net, x, ["a/" * 3000 + str(n) for n in range(5)] + ["///", "...", "a", "a/", "."]))
    tree = tree_of(net, tmp_path)
    assert len(tree.groups) < 20
    assert all(len(group.label) <= 80 for group in tree.groups)


def test_layers_of_a_shared_module_stand_where_they_are_used(tmp_path: Path) -> None:
    """Every activation belongs to the block before it, not to the module ``m.9`` that its name says.

    The last one is connected with the layers of that module, and stays there.
    """
    tree = tree_of(shared_activation(9), tmp_path)
    for block in range(8):
        assert members(tree, f"m.{block}") == {f"m.{block}.{part}" for part in "abc"} | {f"m.9.act/ReLU_{block}"}
    assert members(tree, "m.8") == {f"m.8.{part}" for part in "abc"}
    assert members(tree, "m.9") == {f"m.9.head{number}" for number in range(5)} | {"m.9.act/ReLU_8"}


def test_groups_without_cycles_are_left_alone() -> None:
    """Two heads of one group are not connected with each other, but the data leaves the group only once."""
    reads = {0: [], 1: [0], 2: [0], 3: [2]}
    groups = {0: 0, 1: 1, 2: 1, 3: 1}
    assert untangled([0, 1, 2, 3], groups, reads.__getitem__, float) == groups  # type: ignore[arg-type]


def test_of_equal_parts_of_a_hub_the_one_that_begins_first_keeps_its_group() -> None:
    """The hub {1, 6} and {3, 4}: 3 reads 2, so that {3, 4} joins 2. It ends before 6, which reads 1 and 5."""
    reads = {0: [], 1: [0], 2: [1], 3: [2], 4: [3], 5: [4], 6: [1, 5]}
    groups = {0: 0, 1: 9, 6: 9, 3: 9, 4: 9, 2: 2, 5: 2}
    found = untangled(range(7), groups, reads.__getitem__, int)
    assert found == {0: 0, 1: 9, 6: 9, 2: 2, 3: 2, 4: 2, 5: 2}


def test_the_largest_part_of_a_hub_keeps_its_group() -> None:
    """0 → 1 → 2 → 3 → 4 → 5 with the hub {1, 3, 4, 5}: 3 to 5 are its largest part, and 1 joins 0, which it reads."""
    reads = {0: [], **{n: [n - 1] for n in range(1, 6)}}
    groups = {0: 0, 2: 2, 1: 1, 3: 1, 4: 1, 5: 1}
    assert untangled(range(6), groups, reads.__getitem__, int) == {0: 0, 1: 0, 2: 2, 3: 1, 4: 1, 5: 1}


@pytest.mark.parametrize("seed", range(60))
def test_ordered_groups_form_no_cycle(seed: int) -> None:
    """In random graphs with random groups, the graph of the groups has no cycle, and each group lies in an old one."""
    draw = random.Random(seed)
    count = draw.randint(2, 40)
    reads = {n: sorted({draw.randrange(n) for _ in range(draw.randint(0, 3))}) if n else [] for n in range(count)}
    groups = {n: draw.randrange(draw.randint(1, 12)) for n in range(count)}
    found = ordered(range(count), groups, reads.__getitem__)
    quotient = nx.DiGraph((found[o], found[n]) for n, others in reads.items() for o in others if found[o] != found[n])
    assert nx.is_directed_acyclic_graph(quotient)
    assert len({(found[n], groups[n]) for n in range(count)}) == len(set(found.values()))


def test_groups_in_order_are_left_whole() -> None:
    """1 and 2 are a group that no path leaves and enters again; {0, 3} is divided, because 0 → 1 → 3 leaves it."""
    reads = {0: [], 1: [0], 2: [0], 3: [1]}
    found = ordered(range(4), {0: 9, 3: 9, 1: 8, 2: 8}, reads.__getitem__)
    assert found[1] == found[2]
    assert len(set(found.values())) == 3


@pytest.mark.parametrize("seed", range(8))
def test_no_edge_leads_back(seed: int, tmp_path: Path) -> None:
    """Whichever groups are open, the edges between what is visible form no cycle."""
    draw = random.Random(seed)
    net = Net()
    values = [net.parameter("f32", "2", name="x")]
    for number in range(draw.choice([30, 300])):
        name = f"{draw.choice(['m', 'n.a', 'n.b', 'n.c'])}.{draw.randrange(4)}/{number}"
        values.append(net.add("Add", [draw.choice(values[-9:]), values[-1]], [TWO], name=name))
    net.result(values[-1])
    tree = tree_of(net, tmp_path)
    count = len(tree.entries)
    for _ in range(6):
        opened = {count} | {count + n for n in range(len(tree.groups)) if draw.random() < 0.5}
        visible = {}
        for number in tree.visible(opened):
            waiting = [number]
            while waiting:
                member = waiting.pop()
                visible[member] = number
                waiting += tree.groups[member - count].members if member >= count else []
        pairs = [(visible[a], visible[b]) for a, b, _ in tree.entries.links() if a in visible and b in visible]
        assert nx.is_directed_acyclic_graph(nx.DiGraph((a, b) for a, b in pairs if a != b))


def test_groups_are_titled_by_what_they_hold(tmp_path: Path) -> None:
    """A converter's own name says nothing: the types do. A number is shown with the part before it."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    x = chain(net, x, ["ReLU_7/a", "ReLU_7/b"])
    x = chain(net, x, ["ReLU_7/c", "ReLU_7/d"], "Tanh")
    x = chain(net, x, [f"block.{3 + n // 4}/{n}" for n in range(8)])
    net.result(chain(net, x, [f"head/{n}" for n in range(4)], "Sigmoid"))
    assert {"ReLU → Tanh", "block.3", "head"} <= labels(tree_of(net, tmp_path))
    flat = Net()
    x = flat.parameter("f32", "2", name="x")
    for n in range(60):
        x = chain(flat, chain(flat, x, [f"Tanh_{2 * n}"], "Tanh"), [f"ReLU_{2 * n + 1}"])
    flat.result(x)
    assert "ReLU → Tanh … Tanh" in labels(tree_of(flat, tmp_path))
