"""Strings of any bytes: nothing is lost on any path, and no string is padded to the longest."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import irrun
import irrun.compat.openvino as ov
from irrun import build as b
from irrun import testing
from irrun.cli import cli

BYTES = [b"", b"a\0b", b"a\0", b"\0", b"\xff\xfe", "é".encode(), "\U0001f600".encode(), b"\xc3", b"x" * 300]
"""Empty, with NULs inside and at the end, not UTF-8, two and four bytes long, a broken character, and long."""
WORDS = ["", "a\0b", "a\0", "\0", "\udcff\udcfe", "é", "\U0001f600", "\udcc3", "x" * 300]
"""The same strings, as PEP 383 writes them."""


def words() -> np.ndarray:
    return np.array(WORDS, object)


@pytest.mark.parametrize("feed", [WORDS, words(), np.array(BYTES, object), [*BYTES]], ids=["list", "str", "bytes", "b"])
@pytest.mark.parametrize("element_type", ["string", "dynamic"])
def test_inputs(feed: Any, element_type: str) -> None:
    for shape in ([9], [None]):
        executable = irrun.compile(b.model(b.Identity(b.parameter(shape, element_type, name="x"))))
        for _ in range(4):
            (out,) = executable({"x": feed}).arrays
            assert (out.dtype, out.tolist()) == (np.dtype(object), WORDS)


@pytest.mark.parametrize(
    "feed",
    [np.array(["a", "é"]), np.array(["a", "é"], np.dtypes.StringDType()), np.array([b"a", "é".encode()]), ("a", "é")],
    ids=["U", "T", "S", "tuple"],
)
def test_other_arrays_of_strings(feed: Any) -> None:
    assert irrun.run(b.model(b.parameter([2], "string", name="x")), {"x": feed})[0].tolist() == ["a", "é"]


def test_bytes_that_were_cut_apart_are_joined() -> None:
    """Two surrogates stand for the two bytes of é."""
    feed = np.array(["\udcc3\udca9", "é"], object)
    x = b.parameter([2], "string", name="x")
    outputs = irrun.run(b.model({"same": b.Equal(x, np.array(["é"])), "x": x}), feed)
    assert outputs["same"].tolist() == [True, True]
    assert outputs["x"].tolist() == ["é", "é"]


@pytest.mark.parametrize("feed", [["\ud800"], [1], np.array(["a", None], object), np.ones(1)])
def test_what_is_no_string_is_refused(feed: Any) -> None:
    with pytest.raises(irrun.FeedError, match="IR601"):
        irrun.run(b.model(b.parameter([None], "string", name="x")), {"x": feed})


def _moves(x: Any) -> dict[str, tuple[Any, np.ndarray]]:
    """Return operations that move strings, each with what numpy makes of it."""
    data, i64 = words(), np.int64
    return {
        "broadcast": (b.Broadcast(x, [2, 9]), np.broadcast_to(data, (2, 9))),
        "tile": (b.Tile(x, [2]), np.tile(data, 2)),
        "concat": (b.Concat(x, x, axis=0), np.concatenate([data, data])),
        "gather": (b.Gather(x, np.array([4, -1, 2]), i64(0)), data[[4, -1, 2]]),
        "beyond": (b.Gather(x, np.array([4, 9]), i64(0)), np.array(["\udcff\udcfe", ""], object)),
        "reshape": (b.Reshape(x, [3, 3], special_zero=False), data.reshape(3, 3)),
        "transpose": (b.Transpose(b.Unsqueeze(x, [0]), [1, 0]), data[:, None]),
        "slice": (b.Slice(x, [8], [0], [-3]), data[8:0:-3]),
        "pad": (b.Pad(x, [1], [0], pad_mode="constant"), np.concatenate([np.array([""], object), data])),
        "select": (
            b.Select(np.arange(9) > 4, x, np.array(["y\0"], object)),
            np.where(np.arange(9) > 4, data, np.array(["y\0"], object)),
        ),
        "reverse": (b.Reverse(x, [0], mode="index", opset=1), data[::-1]),
        "roll": (b.Roll(x, [1], [0]), np.roll(data, 1)),
        "split": (b.Split(x, i64(0), num_splits=3)[1], data[3:6]),
    }


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", _moves(b.parameter([9], "string")))
def test_operations_move_strings(name: str, exact: bool) -> None:
    for shape in ([9], [None]):
        node, expected = _moves(b.parameter(shape, "string", name="x"))[name]
        executable = irrun.compile(b.model(node), exact=exact)
        for _ in range(4):
            (out,) = executable(words()).arrays
            assert (out.shape, out.ravel().tolist()) == (expected.shape, expected.ravel().tolist())


@pytest.mark.parametrize("exact", [False, True])
def test_comparisons_compare_bytes(exact: bool) -> None:
    """b"\\xff" is greater than any UTF-8, although its surrogate comes before an emoji."""
    x, y = b.parameter([9], "string", name="x"), b.parameter([9], "string", name="y")
    model = b.model({"less": b.Less(x, y), "equal": b.Equal(x, y), "most": b.GreaterEqual(x, y)})
    executable, shifted = irrun.compile(model, exact=exact), np.roll(words(), 1)
    less, equal, most = executable([words(), shifted]).arrays
    others = BYTES[-1:] + BYTES[:-1]
    assert less.tolist() == [one < other for one, other in zip(BYTES, others)]
    assert most.tolist() == [one >= other for one, other in zip(BYTES, others)]
    assert not equal.any()
    assert executable([words(), words()])["equal"].all()


@pytest.mark.parametrize("exact", [False, True])
def test_pack_and_unpack(exact: bool) -> None:
    x = b.parameter([9], "string", name="x")
    begins, ends, symbols = (b.StringTensorUnpack(x)[n] for n in range(3))
    model = b.model({"words": b.StringTensorPack(begins, ends, symbols), "symbols": symbols})
    outputs = irrun.compile(model, exact=exact)(words())
    assert outputs["symbols"].tobytes() == b"".join(BYTES)
    assert outputs["words"].tolist() == WORDS


def test_constants_files_and_states(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    irrun.save_model(b.model(b.Identity(b.constant(words(), name="words"), name="same")), path)
    assert irrun.check(path).ok
    for exact in (False, True):
        outputs = irrun.compile(path, exact=exact)(taps=["words", "same"])
        assert outputs[0].tolist() == outputs.taps["words"].tolist() == outputs.taps["same"].tolist() == WORDS
    x = b.parameter([9], "string", name="x")
    held = b.ReadValue(x, variable_id="v", variable_type="string", variable_shape=[9], opset=6)
    executable = irrun.compile(b.model(held))
    assert executable(words())[0].tolist() == WORDS


def test_a_variable_without_a_value_is_empty_text() -> None:
    held = b.ReadValue(variable_id="v", variable_type="string", variable_shape=[2], opset=6)
    assert irrun.run(b.model(held))[0].tolist() == ["", ""]


def test_the_command_line(tmp_path: Path) -> None:
    path, saved, dump = tmp_path / "net.xml", tmp_path / "out.npz", tmp_path / "dump"
    irrun.save_model(b.model({"y": b.Identity(b.parameter([None], "string", name="x"))}), path)

    def run(strings: list[str], *options: str) -> Any:
        literal = json.dumps(strings)
        result = CliRunner().invoke(cli, ["run", str(path), "-i", f"x={literal}", *options])
        assert result.exit_code == 0, result.output
        return result

    plain = ["", "a\0b", "\udcff\udcfe", "é", "\U0001f600"]
    record = json.loads(run(plain, "--format", "json").stdout)
    assert record["outputs"][0]["first"] == plain
    text = run(plain, "-o", str(saved), "--dump", str(dump)).output
    assert r"\udcff\udcfe" in text
    assert np.load(saved)["y"].tolist() == plain
    arrays = [np.load(file).tolist() for file in sorted(dump.glob("*.npy"))]
    assert arrays
    assert all(array == plain for array in arrays)
    # fixed-width arrays cannot hold a NUL at the end
    note = run(["a\0", ""], "-o", str(saved)).output
    assert "saved as uint8" in note
    assert np.load(saved)["y"].tobytes() == np.array([2, 0, 2, 2], np.int32).tobytes() + b"a\0"


def test_assertions_see_every_byte() -> None:
    model = b.model(b.Identity(b.parameter([9], "string", name="x")))
    testing.assert_matches(model, words(), [words()])
    other = words()
    other[2] = "a"
    with pytest.raises(AssertionError):
        testing.assert_matches(model, words(), [other])


@pytest.mark.parametrize("strings", [["a", "\udcff"], ["a\0", ""]])
def test_golden_outputs(strings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", *(name for name in os.environ if name.startswith("PYTEST_"))):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    path = tmp_path / "net.xml"
    (tmp_path / "pytest.ini").write_text("[pytest]\nirrun_models = *.xml\n")
    monkeypatch.chdir(tmp_path)

    def save(words: list[str]) -> None:
        irrun.save_model(b.model({"y": b.Identity(b.constant(np.array(words, object)), name="y")}), path)

    def run(*options: str) -> int:
        return pytest.main(["-q", "-p", "irrun.pytest_plugin", "-p", "no:cacheprovider", "net.xml", *options])

    save(strings)
    assert (run("--irrun-update"), run()) == (0, 0)
    save(["a", ""])
    assert run() == 1


def test_the_stand_in_for_openvino() -> None:
    tensor = ov.Tensor(np.array([b"\xff", b"ab"], object))
    assert tensor.element_type == ov.Type.string  # pyright: ignore[reportAttributeAccessIssue]
    assert tensor.bytes_data.tolist() == [b"\xff", b"ab"]
    assert tensor.str_data.tolist() == ["\ufffd", "ab"]


def test_a_long_string_beside_many_short_ones() -> None:
    """100,000 strings padded to a megabyte would be 400 GB."""
    feed = np.array([""] * 100_000 + ["x" * 1_000_000], object)
    x = b.parameter([None], "string", name="x")
    executable = irrun.compile(b.model(b.Tile(b.Concat(x, x, axis=0), [2])), max_memory=20_000_000)
    tracemalloc.start()
    try:
        (out,) = executable(feed).arrays
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert len(out[-1]) == 1_000_000


def test_strings_that_share_their_bytes_are_limited() -> None:
    """90,000 strings of a million bytes each, from 720 kB of indices."""
    begins, ends = b.parameter([300, 300], "i32", name="begins"), b.parameter([300, 300], "i32", name="ends")
    node = b.StringTensorPack(begins, ends, b.parameter([1_000_000], "u8", name="symbols"), name="strings")
    executable = irrun.compile(b.model(node), max_memory=100_000_000)
    feeds = [
        np.zeros((300, 300), np.int32),
        np.full((300, 300), 1_000_000, np.int32),
        np.zeros(1_000_000, np.uint8),
    ]
    tracemalloc.start()
    try:
        with pytest.raises(irrun.ExecutionError, match=r'IR604.*StringTensorPack "strings"'):
            executable(feeds)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
