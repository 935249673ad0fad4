"""irrun ops and irrun op."""

import json
import re
from pathlib import Path

import pytest

import irrun
from irrun.opdef import all_ops

HOME = Path(irrun.__file__).parent.parent


def test_ops_lists_each_type_once(call):
    rows = [line.split() for line in call("ops").stdout.splitlines()]
    assert rows[0] == ["operation", "versions", "file"]
    assert [row[0] for row in rows[1:]] == list(dict.fromkeys(cls.type for cls in all_ops()))
    assert ["Broadcast", "1,", "3", "irrun/ops/broadcast.py"] in rows


def test_ops_as_markdown(call):
    lines = call("ops", "--format", "markdown").stdout.splitlines()
    assert lines[0] == "| operation | element types | constraints | specification | file |"
    row = "| Broadcast-3 | T: any; int | C1 C2 C3 C4 C5 C6 | movement/broadcast-3 | irrun/ops/broadcast.py |"
    assert row in lines


def test_every_operation_is_found_where_it_is_said_to_be(call):
    for row in json.loads(call("ops", "--format", "json").stdout)["operations"]:
        line = (HOME / row["file"]).read_text(encoding="utf-8").splitlines()[row["line"] - 1]
        assert row["type"].lower() in line.lower(), row


def test_op_shows_every_version(call):
    text = call("op", "broadcast").stdout
    assert re.findall(r"^Broadcast-\d+$", text, re.MULTILINE) == ["Broadcast-3", "Broadcast-1"]
    assert "https://docs.openvino.ai/" in text
    assert "/operation-specs/movement/broadcast-3.html" in text
    assert re.search(r"declared in +\S*broadcast\.py:\d+\n", text)
    assert "axes_mapping  int     optional" in text
    assert "mode  one of numpy, explicit, bidirectional  numpy" in text
    assert "C1  axes_mapping is connected if and only if mode is explicit." in text


def test_op_shows_required_attributes(call):
    text = call("op", "Const").stdout
    assert re.search(r"offset +an integer +required\n", text)
    assert re.search(r"element_type .* none\n", text)


@pytest.mark.parametrize(
    ("name", "found"), [("Broadcast-3", "Broadcast-3"), ("BROADCAST-2", "Broadcast-1"), ("broadcast-17", "Broadcast-3")]
)
def test_op_by_version(name, found, call):
    assert call("op", name).stdout.splitlines()[0] == found


def test_every_operation_can_be_shown(call):
    for cls in all_ops():
        result = call("op", f"{cls.type}-{cls.since}")
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith(f"{cls.type}-{cls.since}\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Brodcast", "did you mean Broadcast"),
        ("Zzzzzz", "irrun ops lists what irrun knows"),
        ("Broadcast-0", "opset0 has no Broadcast; opset1 added it"),
    ],
)
def test_an_unknown_operation(name, said, call):
    result = call("op", name)
    assert result.exit_code == 2
    assert said in result.stderr


def test_clauses_are_printed_once(call):
    """Also those of an operation whose first clause is not C1."""
    assert call("op", "TensorIterator").stdout.count("C2  ") == 1


def test_the_beginning_of_a_word_lists_the_operations(call):
    result = call("op", "conv")
    assert result.exit_code == 0
    names = [line.split()[0] for line in result.stdout.splitlines()[1:]]
    convolutions = {"Convolution", "ConvolutionBackpropData", "GroupConvolution", "GroupConvolutionBackpropData",
                    "DeformableConvolution", "BinaryConvolution", "ConvolutionBiased", "PagedCausalConv1D"}  # fmt: skip
    assert convolutions <= set(names)
    assert set(names) - convolutions == {"Convert", "ConvertLike", "ConvertPromoteTypes", "FakeConvert"}
    assert "irrun does not know the operation cnvolution; did you mean Convolution?" in call("op", "cnvolution").stderr
