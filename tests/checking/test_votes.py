"""Which end of an edge is wrong: the consumers of an output decide, by what they declare and by what they give."""

import struct
from pathlib import Path

import pytest

import irrun
from irrun.api import load
from irrun.checking.fix import fix
from nets import Net, Ref

Found = list[tuple[str, str | None, int | None]]


def found(net: Net, folder: Path) -> Found:
    """Code, layer and port of each finding."""
    return [(d.code, d.layer, d.port) for d in irrun.check(net.save(folder))]


def is_fixable(net: Net, folder: Path, *, unsafe: bool = False) -> bool:
    """Whether fixing leaves no finding, except for operations that irrun does not know."""
    return {d.code for d in fix(load(net.save(folder)), unsafe=unsafe).left} <= {"IR201"}


def reading(ref: Ref, dims: str, type: str = "FP32") -> Ref:
    """An output as a consumer's input port declares it."""
    return Ref(ref.layer, ref.port, (type, dims))


# ---------------------------------------------------------------------------------------------
# a Parameter, whose dims nothing but the file gives: its consumers may show that they are wrong

_CONSUMERS = {
    # the input port of each declares [2,4]; what a consumer gives is its vote
    "for": ("ReLU", ("FP32", "2,4")),  # only an input [2,4] gives this
    "against": ("ReLU", ("FP32", "2,3")),  # only an input [2,3] gives this
    "either": ("ShapeOf", ("I64", "2")),
    "neither": ("ReLU", ("FP32", "7")),
}


def parameter(*votes: str) -> Net:
    """A Parameter that declares [2,3], and consumers made for [2,4]."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    for vote in votes:
        type, output = _CONSUMERS[vote]
        net.result(net.add(type, [reading(x, "2,4")], [output], name=vote))
    return net


@pytest.mark.parametrize("votes", [("for",), ("for", "either"), ("either", "for")], ids=" ".join)
def test_the_parameter_is_wrong_where_consumers_give_what_they_declare_without_it(
    votes: tuple[str, ...], tmp_path: Path
) -> None:
    assert found(parameter(*votes), tmp_path) == [("IR402", "x", 0)]


@pytest.mark.parametrize("vote", ["against", "either"])
def test_the_consumer_is_wrong_where_nothing_speaks_against_the_parameter(vote: str, tmp_path: Path) -> None:
    assert found(parameter(vote), tmp_path) == [("IR402", vote, 0)]


def test_a_consumer_that_neither_would_suit_says_nothing(tmp_path: Path) -> None:
    assert found(parameter("neither"), tmp_path) == [("IR402", "neither", 0), ("IR401", "neither", 1)]
    assert found(parameter("neither", "for"), tmp_path) == [("IR402", "x", 0), ("IR401", "neither", 1)]


@pytest.mark.parametrize("votes", [("for", "against"), ("against", "for")], ids=" ".join)
def test_contradicting_consumers_leave_the_parameter_right(votes: tuple[str, ...], tmp_path: Path) -> None:
    expected: dict[str, Found] = {
        "for": [("IR402", "for", 0), ("IR401", "for", 1)],
        "against": [("IR402", "against", 0)],
    }
    assert found(parameter(*votes), tmp_path) == [finding for vote in votes for finding in expected[vote]]


# ---------------------------------------------------------------------------------------------
# an output that declares other dims than its layer gives: one of the two is handed on


def relu(*consumers: tuple[str, str]) -> Net:
    """A ReLU that gives [2,3] and declares [2,4]; each consumer as what its input and its output port declare."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    out = net.add("ReLU", [x], [("FP32", "2,4")], name="relu")
    for number, (reads, gives) in enumerate(consumers):
        tanh = net.add("Tanh", [reading(out, reads)], [("FP32", gives)], name=f"tanh{number}")
        net.result(tanh)
    return net


_WRONG = ("IR401", "relu", 1)


@pytest.mark.parametrize("dims", ["2,3", "2,4"])
@pytest.mark.parametrize("says", ["input", "output"])
def test_consumers_that_agree_with_one_of_both_are_not_reported(says: str, dims: str, tmp_path: Path) -> None:
    """By what its input port declares or, where that says nothing, by what its output port does."""
    reads = dims if says == "input" else ""
    assert found(relu((reads, dims), (reads, dims)), tmp_path) == [_WRONG]


@pytest.mark.parametrize(
    ("votes", "inferred"), [(("2,3", "2,4", "2,4"), "4"), (("2,4", "2,3", "2,3"), "3"), (("2,4", "2,3", "2,4"), "4")]
)
@pytest.mark.parametrize("says", ["input", "output"])
def test_the_majority_of_contradicting_consumers_decides(
    says: str, votes: tuple[str, ...], inferred: str, tmp_path: Path
) -> None:
    net = relu(*((dims if says == "input" else "", dims) for dims in votes))
    report = irrun.check(net.save(tmp_path))
    minority = next(i for i, dims in enumerate(votes) if votes.count(dims) == 1)
    assert [(d.code, d.layer, d.port) for d in report] == [_WRONG, ("IR401", f"tanh{minority}", 1)]
    assert f"inferred {inferred}" in report.diagnostics[1].message
    assert is_fixable(net, tmp_path)


@pytest.mark.parametrize("votes", [("2,4", "2,3"), ("2,3", "2,4")])
@pytest.mark.parametrize("says", ["input", "output"])
def test_without_a_majority_the_inferred_value_counts_and_no_fix_is_safe(
    says: str, votes: tuple[str, ...], tmp_path: Path
) -> None:
    net = relu(*((dims if says == "input" else "", dims) for dims in votes))
    report = irrun.check(net.save(tmp_path))
    assert [(d.code, d.layer, d.port) for d in report] == [_WRONG, ("IR401", f"tanh{votes.index('2,4')}", 1)]
    assert "inferred 3" in report.diagnostics[1].message
    assert "its consumers contradict each other, so that no fix is safe" in report.diagnostics[0].notes
    assert [d.fix.safe for d in report if d.fix] == [False, False]
    assert is_fixable(net, tmp_path, unsafe=True)


def test_the_outputs_of_consumers_break_a_tie_of_their_inputs(tmp_path: Path) -> None:
    report = irrun.check(relu(("2,4", "2,3"), ("2,3", "2,3")).save(tmp_path))
    assert [(d.code, d.layer, d.port) for d in report] == [_WRONG]
    assert [d.fix.safe for d in report if d.fix] == [True]


@pytest.mark.parametrize(("reads", "gives", "inferred"), [("2,3", "2,4", "3"), ("2,4", "2,3", "4")])
def test_an_input_port_counts_more_than_an_output_port(reads: str, gives: str, inferred: str, tmp_path: Path) -> None:
    report = irrun.check(relu((reads, gives)).save(tmp_path))
    assert [(d.code, d.layer, d.port) for d in report] == [_WRONG, ("IR401", "tanh0", 1)]
    assert f"inferred {inferred}" in report.diagnostics[1].message


def test_what_is_inferred_counts_where_no_consumer_agrees_with_either(tmp_path: Path) -> None:
    report = irrun.check(relu(("2,5", "2,5")).save(tmp_path))
    assert [(d.code, d.layer, d.port) for d in report] == [_WRONG, ("IR401", "tanh0", 1)]
    assert "dim 1 is 5, inferred 3" in report.diagnostics[1].message


# ---------------------------------------------------------------------------------------------
# an output of which nothing is inferred, its operation being unknown: several consumers outvote it


def unheard(declared: tuple[str, str], *consumers: tuple[str, str]) -> Net:
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    out = net.add("Unheard", [x], [declared], name="unheard")
    for number, (type, dims) in enumerate(consumers):
        tanh = net.add("ShapeOf", [reading(out, dims, type)], [("I64", "2")], name=f"shape{number}")
        net.result(tanh)
    return net


_SAID, _OTHER, _THIRD = ("FP32", "2,3"), ("FP16", "2,3"), ("FP64", "2,3")
_DIMS, _MORE = ("FP32", "2,4"), ("FP32", "2,5")
_UNKNOWN = ("IR201", "unheard", None)


@pytest.mark.parametrize(
    ("consumers", "expected"),
    [
        ([_OTHER], [("IR304", "shape0", 0)]),
        ([_OTHER, _OTHER], [("IR304", "unheard", 1)]),
        ([_OTHER, _THIRD], [("IR304", "shape0", 0), ("IR304", "shape1", 0)]),
        ([_SAID, _OTHER], [("IR304", "shape1", 0)]),
        ([_OTHER, _SAID], [("IR304", "shape0", 0)]),
        ([_DIMS], [("IR402", "shape0", 0)]),
        ([_DIMS, _DIMS], [("IR402", "unheard", 1)]),
        ([_DIMS, _MORE], [("IR402", "shape0", 0), ("IR402", "shape1", 0)]),
        ([_SAID, _DIMS], [("IR402", "shape1", 0)]),
        ([_DIMS, _SAID], [("IR402", "shape0", 0)]),
        ([_SAID, _OTHER, _OTHER, _OTHER], [("IR304", "unheard", 1)]),
        ([_SAID, _DIMS, _DIMS, _DIMS], [("IR402", "unheard", 1)]),
        ([_MORE, _DIMS, _DIMS], [("IR402", "unheard", 1)]),
    ],
    ids=lambda case: " ".join(" ".join(map(str, row[:2])) for row in case),
)
def test_only_several_consumers_that_agree_outvote_an_output(
    consumers: list[tuple[str, str]], expected: Found, tmp_path: Path
) -> None:
    assert found(unheard(_SAID, *consumers), tmp_path) == [_UNKNOWN, *expected]


@pytest.mark.parametrize(
    ("consumers", "is_safe"),
    [
        ([_OTHER], True),
        ([_OTHER, _THIRD], False),
        ([_DIMS], True),
        ([_DIMS, _MORE], False),
        ([_SAID, _DIMS], True),
        ([_SAID, _DIMS, _DIMS], False),
    ],
)
def test_a_fix_is_safe_unless_the_consumers_contradict_each_other(
    consumers: list[tuple[str, str]], is_safe: bool, tmp_path: Path
) -> None:
    net = unheard(_SAID, *consumers)
    fixes = [d.fix for d in irrun.check(net.save(tmp_path)) if d.fix]
    assert fixes
    assert all(fix.safe == is_safe for fix in fixes)
    assert is_fixable(net, tmp_path, unsafe=True)


# ---------------------------------------------------------------------------------------------
# what the consumers of such an output read is what they elected: never two safe fixes that contradict each other

_PRODUCERS = {
    "unknown-operation": ("Unheard", {}),
    "malformed-attribute": ("Elu", {"alpha": "x"}),
    "refused": ("Concat", {"axis": 7}),
}


def undeduced(producer: str, declared: tuple[str, str], *consumers: tuple[tuple[str, str], tuple[str, str]]) -> Net:
    """A layer that cannot be inferred, and ReLUs that read it, each as what its input and its output port declare."""
    type, attributes = _PRODUCERS[producer]
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    out = net.add(type, [x], [declared], name="broken", **attributes)
    for number, (reads, gives) in enumerate(consumers):
        net.result(net.add("ReLU", [reading(out, reads[1], reads[0])], [gives], name=f"relu{number}"))
    return net


@pytest.mark.parametrize("producer", _PRODUCERS)
@pytest.mark.parametrize("consumers", [[(_DIMS, _DIMS)], [(_DIMS, _DIMS)] * 2], ids=["one", "two"])
def test_dims_that_its_consumers_contradict(
    producer: str, consumers: list[tuple[tuple[str, str], tuple[str, str]]], tmp_path: Path
) -> None:
    net = undeduced(producer, _SAID, *consumers)
    _, *rest = irrun.check(net.save(tmp_path))
    assert [(d.code, d.layer, d.fix and d.fix.title) for d in rest] == [("IR402", "broken", "declare [2,4]")]
    (left,) = fix(load(net.save(tmp_path))).left
    assert left.layer == "broken"


@pytest.mark.parametrize("producer", _PRODUCERS)
def test_a_precision_that_its_consumers_contradict(producer: str, tmp_path: Path) -> None:
    net = undeduced(producer, _SAID, (_OTHER, _OTHER), (_OTHER, _OTHER))
    _, *rest = irrun.check(net.save(tmp_path))
    assert [(d.code, d.layer, d.fix and d.fix.title) for d in rest] == [("IR304", "broken", 'declare precision="FP16"')]


@pytest.mark.parametrize("order", [1, -1])
def test_its_consumers_that_contradict_each_other(order: int, tmp_path: Path) -> None:
    """Each of two ReLUs wants other dims: the output stays as declared, and no fix is safe."""
    net = undeduced("unknown-operation", _SAID, *[(_DIMS, _DIMS), (_MORE, _MORE)][::order])
    report = irrun.check(net.save(tmp_path))
    expected = [("IR402", "relu0"), ("IR401", "relu0"), ("IR402", "relu1"), ("IR401", "relu1")]
    assert [(d.code, d.layer) for d in report][1:] == expected
    assert not any(d.fix.safe for d in report if d.fix)


def test_the_wrong_end_is_compared_with_a_consumer_of_the_majority(tmp_path: Path) -> None:
    """Not with the first consumer that differs."""
    report = irrun.check(unheard(_SAID, _MORE, _DIMS, _DIMS).save(tmp_path))
    assert [d.fix.title for d in report if d.fix] == ["declare [2,4]"]


def test_a_vote_may_depend_on_layers_that_come_later(tmp_path: Path) -> None:
    """The repeats of Tile come after the layer that is voted on, and follow from a chain of layers."""
    net = Net()
    x = net.parameter("f32", "2,3", name="x")
    out = net.add("Unheard", [x], [("FP32", "2,3")], name="unheard")
    repeats = net.const("i32", "2", struct.pack("<2i", 1, 2), name="repeats")
    for number in range(3):
        repeats = net.add("Convert", [repeats], [("I64", "2")], name=f"convert{number}", destination_type="i64")
    net.result(net.add("Tile", [reading(out, "2,4"), repeats], [("FP32", "2,8")], name="tile"))
    assert found(net, tmp_path) == [_UNKNOWN, ("IR402", "unheard", 1)]
