"""Which inputs the two sides of a comparison get: pairs by name, by --map or by position, and those that a dump holds."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli
from irrun.debug import Comparison, bisect, compare
from irrun.debug.measurements import read_measurements, write_measurements
from irrun.engines import Engine

Compare = Callable[..., Comparison]


@pytest.fixture
def run(two: tuple[Engine, Engine]) -> Compare:
    """Return ``compare`` for two IR files that irrun runs, in processes that are running already."""
    return functools.partial(compare, running=two)


def embedding(names: tuple[str, str, str], order: tuple[int, int, int], layers: str = "") -> irrun.Model:
    """Return a model of three inputs [1,4] of integers, as of BERT: ids, mask and segments, in the order ``order``.

    ``layers`` is put in front of the names of the layers.
    """
    inputs = [b.parameter([1, 4], "i64", name=name) for name in names]
    rng = np.random.default_rng(3)
    ids, mask, segments = inputs
    words = b.Gather(rng.normal(size=(10, 6)).astype(np.float32), ids, np.int64(0), name=f"{layers}words")
    kinds = b.Gather(rng.normal(size=(10, 6)).astype(np.float32), segments, np.int64(0), name=f"{layers}kinds")
    weight = b.Unsqueeze(b.Convert(mask, destination_type="f32", name=f"{layers}convert"), [2], name=f"{layers}wide")
    total = b.Multiply(b.Add(words, kinds, name=f"{layers}sum"), weight, name=f"{layers}masked")
    y = b.Tanh(total, name=f"{layers}tanh")
    return b.model({"y": y}, inputs=[inputs[at] for at in order])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return a model, and copies of it with other names and another order of inputs."""
    folder = tmp_path_factory.mktemp("inputs")
    models = {
        "good": embedding(("ids", "mask", "segments"), (0, 1, 2)),
        "reordered": embedding(("ids", "mask", "segments"), (2, 0, 1)),
        "renamed": embedding(("a", "b", "c"), (0, 1, 2)),
        "both": embedding(("a", "b", "c"), (2, 0, 1)),
        "converted": embedding(("a", "b", "c"), (2, 0, 1), "node"),
    }
    for name, model in models.items():
        irrun.save_model(model, folder / f"{name}.xml")
    return {name: str(folder / f"{name}.xml") for name in models}


MAP = {"ids": "a", "mask": "b", "segments": "c"}


def ways(comparison: Any) -> list[tuple[str, str, str]]:
    return [(pair.reference, pair.candidate, pair.by) for pair in comparison]


def test_pairs_by_name(run: Compare, files: dict[str, str]) -> None:
    comparison = run(files["good"], files["reordered"])
    assert comparison.agrees
    assert ways(comparison.inputs) == [(name, name, "name") for name in MAP]


def test_pairs_by_position(run: Compare, files: dict[str, str]) -> None:
    comparison = run(files["good"], files["renamed"])
    assert comparison.agrees
    assert ways(comparison.inputs) == [(name, other, "position") for name, other in MAP.items()]
    assert [layer.type for layer in comparison.layers if layer.type == "Parameter"] == []


@pytest.mark.parametrize("other", ["both", "converted"])
def test_wrong_positions_are_seen(other: str, run: Compare, files: dict[str, str]) -> None:
    """By position, ids, mask and segments are fed to c, a and b. The layers that read them tell what they are."""
    comparison = run(files["good"], files[other])
    assert comparison.verdict == "differ"
    assert comparison.first is not None
    first = comparison.first.layer
    assert (first.type, first.name, first.candidate) == ("Parameter", "ids", "a")
    assert [layer.name for layer in comparison.layers if layer.type == "Parameter"] == list(MAP)
    assert ways(comparison.inputs) == [
        ("ids", "c", "position"),
        ("mask", "a", "position"),
        ("segments", "b", "position"),
    ]


@pytest.mark.parametrize("other", ["both", "converted"])
def test_names_that_the_user_pairs(other: str, run: Compare, files: dict[str, str]) -> None:
    comparison = run(files["good"], files[other], renames=MAP)
    assert comparison.agrees
    assert ways(comparison.inputs) == [(name, other, "map") for name, other in MAP.items()]
    assert bisect(files["good"], files[other], renames=MAP).verdict == "agree"
    # the names of the others are paired, and one pair of inputs is left
    assert run(files["good"], files[other], renames={"ids": "a", "mask": "b"}).agrees


def test_bisection_asks_for_the_pairs(files: dict[str, str]) -> None:
    with pytest.raises(irrun.EngineError, match=r'IR707.*do not fit.*"ids".*"a"') as caught:
        bisect(files["good"], files["both"])
    assert "--map ids=a" in (caught.value.diagnostics[0].help or "")


def test_both_commands_want_the_names_of_the_reference(run: Compare, files: dict[str, str]) -> None:
    sample = {"ids": np.full((1, 4), 3), "mask": np.ones((1, 4), np.int64), "segments": np.zeros((1, 4), np.int64)}
    assert run(files["good"], files["renamed"], sample).agrees
    assert bisect(files["good"], files["renamed"], sample).verdict == "agree"
    for judge in (run, bisect):
        with pytest.raises(irrun.FeedError, match="no input 'a'"):
            judge(files["good"], files["renamed"], {"a": sample["ids"]})


def test_positions_that_cannot_be_right(run: Compare, tmp_path: Path) -> None:
    def make(names: tuple[str, str], order: tuple[int, int], shape: list[int], type: str) -> str:
        x, y = b.parameter([2, 3], "f32", name=names[0]), b.parameter(shape, type, name=names[1])
        path = tmp_path / f"{'-'.join(names)}.xml"
        add = b.Add(x, b.Convert(y, destination_type="f32", name="convert"), name="add")
        irrun.save_model(b.model({"out": add}, inputs=[(x, y)[at] for at in order]), path)
        return str(path)

    for shape, type in (([3], "f32"), ([2, 3], "i64")):
        good, bad = make(("x", "bias"), (0, 1), shape, type), make(("data", "shift"), (1, 0), shape, type)
        for judge in (run, bisect):
            with pytest.raises(irrun.EngineError, match=r'IR707.*"x" \(f32 \[2,3\]\) with "shift".*"bias".*"data"'):
                judge(good, bad)
        assert run(good, bad, renames={"x": "data"}).agrees


def test_inputs_of_other_numbers(run: Compare, tmp_path: Path) -> None:
    """An input that only the reference has is reported; one that only the candidate has is refused."""
    x, y = b.parameter([2], "f32", name="x"), b.parameter([2], "f32", name="y")
    irrun.save_model(b.model({"z": b.ReLU(x, name="relu")}, inputs=[x, y]), tmp_path / "two.xml")
    x = b.parameter([2], "f32", name="x")
    irrun.save_model(b.model({"z": b.ReLU(x, name="relu")}), tmp_path / "one.xml")
    one, two = str(tmp_path / "one.xml"), str(tmp_path / "two.xml")
    assert ways(run(two, one).inputs) == [("x", "x", "name"), ("y", "", "")]
    with pytest.raises(irrun.EngineError, match=r'IR707.*none of the reference.*"y" of the candidate'):
        run(one, two)


@pytest.mark.parametrize(
    ("renames", "text"),
    [
        ({"idz": "a"}, 'has no input, output or layer "idz"'),
        ({"ids": "zzz"}, 'has no input, output or layer "zzz"'),
        ({"ids": "tanh"}, "not both"),
        ({"ids": "a", "mask": "a"}, "more than one name"),
    ],
)
def test_wrong_names_that_the_user_pairs(
    renames: dict[str, str], text: str, run: Compare, files: dict[str, str]
) -> None:
    for judge in (run, bisect):
        with pytest.raises(irrun.EngineError, match=f"IR707.*{text}"):
            judge(files["good"], files["both"], renames=renames)


def test_layers_and_outputs_that_the_user_pairs(run: Compare, tmp_path: Path) -> None:
    def make(names: tuple[str, str], outputs: tuple[str, str]) -> str:
        x = b.parameter([3], "f32", name="x")
        path = tmp_path / f"{names[0]}.xml"
        layers = [b.Tanh(x, name=names[0]), b.Sigmoid(x, name=names[1])]
        irrun.save_model(b.model(dict(zip(outputs, layers))), path)
        return str(path)

    first, second = make(("tanh", "gate"), ("p", "q")), make(("gate2", "tanh2"), ("s", "r"))
    assert run(first, second).verdict == "agree"  # both orders are the same
    comparison = run(first, second, renames={"p": "r", "tanh": "tanh2"})
    assert [(output.name, output.candidate) for output in comparison.outputs] == [("p", "r")]
    layer = next(layer for layer in comparison.layers if layer.name == "tanh")
    assert (layer.candidate, layer.agrees) == ("tanh2", False)  # the second one is a Sigmoid


def test_the_commands_print_pairs(files: dict[str, str]) -> None:
    def call(*arguments: str) -> Any:
        return CliRunner().invoke(cli, list(arguments))

    result = call("compare", files["good"], files["both"])
    assert 'inputs     paired by position: "ids" with "c", "mask" with "a", "segments" with "b"' in result.stdout
    assert 'the first divergence is Parameter "ids"' in result.stdout
    assert "pass --map REFERENCE=CANDIDATE" in result.stdout
    options = [f"--map={name}={other}" for name, other in MAP.items()]
    for command in ("compare", "bisect"):
        result = call(command, files["good"], files["both"], *options)
        assert result.exit_code == 0, result.output
        assert 'inputs     paired by --map: "ids" with "a", "mask" with "b", "segments" with "c"' in result.stdout
        result = call(command, files["good"], files["good"])
        assert "inputs  " not in result.stdout
        for wrong, text in (("ids", "is not REFERENCE=CANDIDATE"), ("=a", "is not REFERENCE=CANDIDATE")):
            result = call(command, files["good"], files["both"], "--map", wrong)
            assert (result.exit_code, text in result.stderr) == (2, True)
        result = call(command, files["good"], files["both"], "--map", "ids=a", "--map", "ids=b")
        assert (result.exit_code, "pair it once" in result.stderr) == (2, True)


def test_saved_measurements_keep_the_pairs(run: Compare, files: dict[str, str], tmp_path: Path) -> None:
    comparison = run(files["good"], files["renamed"], frontier=True)
    write_measurements(comparison, tmp_path / "saved.json")
    assert read_measurements(tmp_path / "saved.json").inputs == comparison.inputs


# ---------------------------------------------------------------------------------------------
# dumps


@pytest.fixture(scope="module")
def dumped(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, np.ndarray]]:
    """Return a dump of the model, and its inputs, which are not those that irrun draws."""
    folder = tmp_path_factory.mktemp("dump")
    inputs = {"ids": np.array([[9, 8, 7, 6]]), "mask": np.array([[1, 1, 0, 1]]), "segments": np.array([[5, 4, 3, 2]])}
    np.savez(folder / "inputs.npz", ids=inputs["ids"], mask=inputs["mask"], segments=inputs["segments"])
    arguments = ["run", files["good"], "-i", str(folder / "inputs.npz"), "--dump", str(folder / "dump")]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    return str(folder / "dump"), inputs


def test_a_dump_has_its_inputs(files: dict[str, str], dumped: tuple[str, dict[str, np.ndarray]]) -> None:
    dump, _ = dumped
    for sides in ((dump, files["good"]), (files["good"], dump), (dump, files["reordered"])):
        comparison = compare(*sides)
        assert comparison.agrees
        assert comparison.layers
        assert all(pair.is_recorded for pair in comparison.inputs)
    assert bisect(dump, files["good"]).verdict == "agree"
    assert compare(dump, files["both"], renames=MAP).agrees
    for command in (["compare", dump, files["good"]], ["bisect", dump, files["good"]]):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
        assert 'inputs     from the dump: "ids", "mask", "segments"' in result.stdout


def test_inputs_that_contradict_a_dump(files: dict[str, str], dumped: tuple[str, dict[str, np.ndarray]]) -> None:
    dump, inputs = dumped
    other = {**inputs, "mask": np.zeros((1, 4), np.int64)}
    for judge in (compare, bisect):
        assert judge(dump, files["good"], inputs).verdict == "agree"
        assert judge(dump, files["good"], {"ids": inputs["ids"]}).verdict == "agree"
        with pytest.raises(irrun.FeedError, match='"mask" has other values'):
            judge(dump, files["good"], other)
        with pytest.raises(irrun.FeedError, match="a single run"):
            judge(dump, files["good"], samples=2)
    result = CliRunner().invoke(cli, ["compare", dump, files["good"], "-i", "ids=[[1,2,3,4]]"])
    assert (result.exit_code, '"ids" has other values' in result.stderr) == (2, True)


def test_two_dumps_of_other_inputs(files: dict[str, str], dumped: tuple[str, Any], tmp_path: Path) -> None:
    """The inputs of dumps are compared as other values are."""
    dump, inputs = dumped
    arguments = ["run", files["good"], "--dump", str(tmp_path / "dump")]
    for name, array in {**inputs, "segments": np.array([[0, 1, 2, 3]])}.items():
        arguments += ["-i", f"{name}={array.tolist()}"]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    comparison = compare(dump, str(tmp_path / "dump"))
    assert comparison.first is not None
    assert (comparison.first.layer.type, comparison.first.layer.name) == ("Parameter", "segments")
    same = compare(dump, dump)
    assert same.agrees
    assert [layer.name for layer in same.layers][:3] == list(MAP)


def test_recordings_without_inputs(files: dict[str, str], tmp_path: Path) -> None:
    """The outputs of `irrun run -o`, and the dump of the hook, have no inputs: the result says so."""
    outputs, folder = str(tmp_path / "out.npz"), str(tmp_path / "dump")
    assert CliRunner().invoke(cli, ["run", files["good"], "-o", outputs]).exit_code == 0
    with irrun.Dump(folder) as dump:
        irrun.compile(files["good"])([np.full((1, 4), n, np.int64) for n in (3, 2, 1)], hooks=[dump])
    for side in (outputs, folder):
        result = CliRunner().invoke(cli, ["compare", side, files["good"]])
        assert 'inputs     only in the candidate: "ids", "mask", "segments"' in result.stdout
    arguments = ["-i", "ids=[[3,3,3,3]]", "-i", "mask=[[2,2,2,2]]", "-i", "segments=[[1,1,1,1]]"]
    assert CliRunner().invoke(cli, ["compare", folder, files["good"], *arguments]).exit_code == 0
