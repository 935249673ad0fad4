"""Bare <layer> examples, as documentation prints them."""

from pathlib import Path

import numpy as np
import pytest

import irrun
from irrun.api import load, load_all
from irrun.diagnostics import ModelError
from irrun.ir.parse import Parsed

PAGE = """\
Replicates
==========

A page with prose, a formula \\[out_i = in_i\\], 1 < 2, and examples.

<layer ... type="Broadcast" ...>
    <data mode="explicit"/>
    <input>
        <port id="0">
            <dim>16</dim>
        </port>
        <port id="1">
            <dim>4</dim>   <!--The tensor contains 4 elements: [1, 16, 5, 5] -->
        </port>
        <port id="1">
            <dim>1</dim>   <!--The tensor contains 1 elements: [1] -->
        </port>
    </input>
    <output>
        <port id="2">
            <dim>1</dim>
            <dim>16</dim>
            <dim>5</dim>
            <dim>5</dim>
        </port>
    </output>
</layer>

With fewer repeats:

 <layer ... type="Tile">
     <input>
         <port id="0">  <!-- will be promoted to shape (1, 2, 3) -->
             <dim>2</dim>
             <dim>3</dim>
         </port>
         <port id="1">
             <dim>3</dim>  <!-- [5, 1, 2] will be promoted to nothing, and is [9] no contents -->
         </port>
     </input>
     <output>
         <port id="2">
             <dim>5</dim>
             <dim>2</dim>
             <dim>6</dim>
         </port>
     </output>
 </layer>

And a broken one:

 <layer ... type="Tile">
     <input>
         <port id="0">
             <dim>2</dim>
         </port>
         <port id="1">
             <dim>2</dim>  <!-- [5, 1] -->
         </port>
     </input>
     <output>
         <port id="2">
             <dim>5/dim>
             <dim>2</dim>
         </port>
     </output>
 </layer>
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.txt"
    path.write_text(PAGE)
    return path


def _line(text: str, after: int = 0) -> int:
    return PAGE.count("\n", 0, PAGE.index(text, after)) + 1


def test_each_example_runs_with_the_contents_of_its_comments(page: Path) -> None:
    explicit, fewer, broken = load_all(page)
    assert isinstance(explicit, Parsed)
    assert isinstance(fewer, Parsed)
    data = np.arange(16, dtype=np.float32)
    out = irrun.compile(explicit.model, strict=True)(data)[0]
    np.testing.assert_array_equal(out, np.broadcast_to(data.reshape(16, 1, 1), (1, 16, 5, 5)))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = irrun.compile(fewer.model, strict=True)({"0": data})[0]
    np.testing.assert_array_equal(out, np.tile(data, (5, 1, 2)))
    assert isinstance(broken, irrun.ReadError)


def test_inputs_are_named_by_position_and_contents_can_be_replaced(page: Path) -> None:
    explicit = load_all(page)[0]
    assert isinstance(explicit, Parsed)
    model = explicit.model
    assert [p.name for p in model.parameters] == ["0", "1", "2"]
    lines = {model.layers[id].name: line for id, (_, line) in model.contents.items()}
    assert lines == {"1": _line("[1, 16, 5, 5]"), "2": _line("elements: [1] ")}
    executable = irrun.compile(model)
    data = np.ones(16, np.float32)
    assert executable({"0": data, "1": np.array([2, 16, 3, 3])})[0].shape == (2, 16, 3, 3)
    assert executable({"0": data.astype(np.int8)})[0].dtype == np.int8


def test_findings_stand_at_the_lines_of_the_page(page: Path) -> None:
    found = [(d.code, d.severity, d.line) for d in irrun.check(page)]
    second, third = PAGE.index("fewer repeats"), PAGE.index("broken one")
    assert found == [
        ("IR008", "warning", _line("<layer")),
        ("IR008", "warning", _line('<port id="1">', PAGE.index('<port id="1">') + 1)),
        ("IR008", "warning", _line("<layer", second)),
        ("IR001", "error", _line("<dim>5/dim>", third)),
    ]


def test_the_broken_one_is_explained(page: Path) -> None:
    broken = load_all(page)[2]
    assert isinstance(broken, irrun.ReadError)
    (problem,) = broken.diagnostics
    assert (problem.line, problem.column) == (_line("<dim>5/dim>"), 14)
    assert problem.help == "write <dim>5</dim>"


def test_wrong_dims_in_an_example(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    path.write_text(PAGE.replace("<dim>6</dim>", "<dim>7</dim>"))
    (problem,) = [d for d in irrun.check(path) if d.code == "IR401"]
    assert problem.line == _line("<dim>6</dim>")
    assert "dim 2 is 7, inferred 6" in problem.message


def test_contents_that_do_not_fit_their_port(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    path.write_text(PAGE.replace("[1, 16, 5, 5]", "[1, 16, 5]"))
    problem = irrun.check(path).diagnostics[1]
    assert (problem.code, problem.severity, problem.line) == ("IR008", "warning", _line("[1, 16, 5, 5]"))
    assert "lists 3 numbers" in problem.message


def test_a_lone_layer_is_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "layer.xml"
    path.write_text(
        '<layer id="7" name="act" type="ReLU" version="opset1"><input><port id="0" precision="FP32"><dim>2</dim></port>'
        '</input><output><port id="1" precision="FP32"><dim>2</dim></port></output></layer>'
    )
    assert not irrun.check(path).diagnostics
    np.testing.assert_array_equal(irrun.run(path, np.array([-1, 2], np.float32))[0], [0, 2])


@pytest.mark.parametrize(
    ("text", "found"),
    [("", ["error"]), ("plain words", []), ("<html><p>no example</p></html>", ["error"]), ("<layer", ["error"])],
)
def test_documents_without_examples(tmp_path: Path, text: str, found: list[str]) -> None:
    path = tmp_path / "page.txt"
    path.write_text(text)
    report = irrun.check(path)
    assert [d.severity for d in report] == found
    with pytest.raises(irrun.ReadError):
        irrun.run(path)


def test_an_example_without_data_is_checked_but_not_run(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        '```xml\n<layer id="0" type="Concat">\n<input><port id="0"><dim>2</dim></port></input>\n'
        '<output><port id="1"><dim>2</dim></port></output>\n</layer>\n```\n'
    )
    assert irrun.check(path).ok
    for exact in (False, True):
        with pytest.raises(ModelError, match=r"page.md:2:1: error\[IR202.*the example has no <data>"):
            irrun.compile(load(path).model, exact=exact)
