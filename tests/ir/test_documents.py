"""<layer> examples in the markup of documentation: found where they are, read as they are meant, placed exactly."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import irrun
from irrun.api import load_all
from irrun.cli import cli
from nets import Net

EXAMPLE = """\
<layer ... type="Concat" ...>
    <data axis="1"/>
    <input>
        <port id="0">
            <dim>2</dim>
            <dim>3</dim>
        </port>
        <port id="1">
            <dim>2</dim>
            <dim>4</dim>
        </port>
    </input>
    <output>
        <port id="2">
            <dim>2</dim>
            <dim>8</dim> <!-- 3 + 4 < 8 -->
        </port>
    </output>
</layer>
"""


def indented(text: str, by: str) -> str:
    return "".join(by + line if line.strip() else line for line in text.splitlines(keepends=True))


def rst(example: str) -> str:
    return (
        "A page\n======\n\nA ``<layer ...>`` in prose::\n\n   <net/>\n\nof its own.\n\n.. note::\n\n"
        f"   .. code-block:: xml\n      :force:\n\n{indented(example, ' ' * 7)}\n"
        f'Without a directive::\n\n\t\n{indented(example, chr(9))}\n\nThe end of <layer type="no example">\n'
    )


def md(example: str) -> str:
    return (
        "# A page\n\nA `<layer ...>` in prose, <layer type='x'> as well.\n\n"
        f"1. In a list:\n\n   ~~~~ xml\n{indented(example, ' ' * 3)}   ~~~~~\n\n"
        f"> Quoted:\n>\n> ```xml\n{indented(example, '> ')}> ```\n\nIndented:\n\n{indented(example, ' ' * 4)}\n"
    )


def page_html(example: str) -> str:
    plain = html.escape(example)
    coloured = re.sub(r"&quot;\w*&quot;|&lt;!--.*?--&gt;", r'<span class="s">\g<0></span>', plain)
    coloured = re.sub(r"(&lt;/?)(\w+)", r'<span\nclass="p">\1</span><b title="a>b">\2</b>', coloured)
    return f"<!DOCTYPE html>\n<p>A &lt;layer type=1&gt;</p><pre>{plain}</pre>\n<pre class='x'><code>{coloured}</code></pre>"


def text(example: str) -> str:
    return f"A page\n\n{example}\nAnd again, after talk of a <layer> as such:\n\n{indented(example, '  ')}"


PAGES = {"page.rst": rst, "page.md": md, "page.txt": text}


@pytest.mark.parametrize("name", PAGES)
def test_found_and_placed(name: str, tmp_path: Path) -> None:
    written = PAGES[name](EXAMPLE)
    path = tmp_path / name
    path.write_text(written)
    lines = written.split("\n")
    found = [d for d in irrun.check(path) if d.code != "IR008"]
    assert len(found) == written.count("<dim>8")
    assert [d.line for d in found] == [i for i, line in enumerate(lines, 1) if "<dim>8" in line]
    for d in found:
        assert d.code == "IR401"
        assert d.span
        assert lines[d.span.line - 1][d.span.column - 1 : d.span.end - 1] == "<dim>8</dim>"


def test_found_and_placed_in_html(tmp_path: Path) -> None:
    written = page_html(EXAMPLE)
    path = tmp_path / "page.html"
    path.write_text(written)
    lines = written.split("\n")
    found = irrun.check(path).diagnostics
    assert [d.code for d in found] == ["IR401"] * 2
    places = [d.span for d in found if d.span]
    plain = lines[places[0].line - 1][places[0].column - 1 : places[0].end - 1]
    assert html.unescape(plain) == "<dim>8</dim>"
    coloured = lines[places[1].line - 1][places[1].column - 1 :]
    assert coloured.startswith('&lt;</span><b title="a>b">dim</b>&gt;8<span')


@pytest.mark.parametrize("name", ["page.rst", "page.md", "page.html"])
def test_dots_are_the_notation_of_documentation(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write = {**PAGES, "page.html": page_html}[name]
    path.write_text(write(EXAMPLE.replace("<dim>8</dim> <!-- 3 + 4 < 8 -->", "<dim>7</dim>").replace("...", "…")))
    assert not irrun.check(path)
    assert load_all(path)


def test_contents_stand_at_their_lines_in_html(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    example = (
        '<layer type="Reshape">\n<data special_zero="false"/>\n<input>\n<port id="0"><dim>6</dim></port>\n'
        '<port id="1"><dim>2</dim> <!-- [2, 3, 1] --></port>\n</input>\n</layer>'
    )
    path.write_text(f"<html>\n<pre>\n{html.escape(example)}</pre>")
    (found,) = irrun.check(path)
    assert (found.code, found.line) == ("IR008", 7)
    assert found.source
    assert found.span
    assert found.source.line(7)[found.span.column - 1 : found.span.end - 1] == "[2, 3, 1]"


def checked(tmp_path: Path, example: str, prose: str = "") -> list[str]:
    """The messages of a check of one example in a page."""
    path = tmp_path / "page.rst"
    path.write_text(f"{prose}\n\n.. code-block:: xml\n\n{indented(example, '   ')}\n")
    return [f"{d.code} {d.message}" for d in irrun.check(path)]


def test_what_is_left_out_is_not_asked_for(tmp_path: Path) -> None:
    """But what is printed is checked."""
    example = '<layer type="SoftMax"><data axis="1"/><input> ... </input><output> … </output></layer>'
    assert not checked(tmp_path, example)
    (found,) = checked(tmp_path, example.replace('axis="1"', 'axis="one"'))
    assert found.startswith("IR203")
    loop = """
        <layer type="Loop" ... >
            <input> ... </input>
            <output> ... </output>
            <port_map>
                <input external_port_id="0" internal_layer_id="0"/>
                ...
                <output external_port_id="3" internal_layer_id="4"/>
            </port_map>
            <back_edges> <edge from-layer="1" to-layer="5"/> ... </back_edges>
            <body>
                <layers> ... </layers>
                <edges> ... </edges>
            </body>
        </layer>"""
    assert not checked(tmp_path, loop)
    assert not checked(
        tmp_path, '<layer type="Parameter" ...><output><port id="0"><dim>1</dim></port></output></layer>'
    )
    cut = '<net>\n   <layers>\n      <layer id="0" type="ReLU">\n         <input>\n            <port id="0">\n    ...'
    assert not checked(tmp_path, cut)


def test_symbolic_dims(tmp_path: Path) -> None:
    example = EXAMPLE.replace("<dim>2</dim>", "<dim>N</dim>").replace("<dim>3</dim>", "<dim>H_out * 2</dim>")
    assert not checked(tmp_path, example)
    assert checked(tmp_path, EXAMPLE.replace("<dim>2</dim>", "<dim>N</dim>"))  # 3 and 4 are still not 8
    (found,) = checked(tmp_path, EXAMPLE.replace("<dim>3</dim>", "<dim>3O</dim>"))
    assert found.startswith("IR404")
    dots = EXAMPLE.replace("<dim>2</dim>\n            <dim>3</dim>", "<dim>2</dim>\n            ...")
    assert not checked(tmp_path, dots)
    assert not checked(tmp_path, dots.replace("            ...", "            <dim>...</dim>"))


@pytest.mark.parametrize(
    ("prose", "version"),
    [
        ("", "opset14"),
        ("**Versioned name**: *MaxPool-1*, which MaxPool-8 came after.", "opset1"),
        ("About MaxPool-8.", "opset8"),
        ("About MaxPool-11.", "opset8"),
        ("About AvgPool-1.", "opset14"),
        ("About MaxPool-999.", "opset14"),
    ],
)
def test_the_version_that_a_page_is_about(prose: str, version: str, tmp_path: Path) -> None:
    """Without a version, MaxPool of the newest one, or of that whose page it is."""
    example = """
        <layer type="MaxPool">
            <data kernel="2,2" strides="2,2" pads_begin="0,0" pads_end="0,0" old="1"/>
            <input><port id="0"><dim>1</dim><dim>1</dim><dim>8</dim><dim>8</dim></port></input>
            <output>
                <port id="1"><dim>1</dim><dim>1</dim><dim>4</dim><dim>4</dim></port>
                <port id="2"><dim>1</dim><dim>1</dim><dim>4</dim><dim>4</dim></port>
            </output>
        </layer>"""
    found = checked(tmp_path, example, prose)
    assert f"MaxPool-{version.removeprefix('opset')} has no attribute old" in " ".join(found)
    assert any("IR206" in f for f in found) == (version == "opset1")


def test_an_operation_whose_name_says_an_earlier_set(tmp_path: Path) -> None:
    """Acosh-3 came with opset4."""
    example = EXAMPLE.replace("Concat", "Acosh").replace('    <data axis="1"/>\n', "")
    example = re.sub(r' {8}<port id="1">.*?</port>\n', "", example, flags=re.DOTALL).replace("<dim>8", "<dim>3")
    assert not checked(tmp_path, example, "Acosh-3")


def test_an_example_that_is_never_closed_hides_no_other(tmp_path: Path) -> None:
    opened = EXAMPLE.replace("</layer>\n", "\n")
    path = tmp_path / "page.txt"
    path.write_text(f"{opened}\n{opened}\n{EXAMPLE}")
    found = [(d.code, d.line) for d in irrun.check(path) if d.code != "IR008"]
    assert found == [("IR001", 21), ("IR001", 41), ("IR401", 56)]


def test_scalars_and_nested_lists_in_comments(tmp_path: Path) -> None:
    example = """
        <layer type="Range" version="opset4">
            <data output_type="i32"/>
            <input>
                <port id="0">  <!-- start value: 2 --></port>
                <port id="1">  <!-- stop is 23. --></port>
                <port id="2">  <!-- step = 3 --></port>
            </input>
            <output><port id="3"><dim>8</dim></port></output>
        </layer>"""
    (found,) = checked(tmp_path, example)
    assert "dim 0 is 8, inferred 7" in found
    assert not checked(tmp_path, example.replace("<dim>8", "<dim>7"))
    lists = """
        <layer type="GatherND" version="opset8">
            <data batch_dims="0"/>
            <input>
                <port id="0"> <!-- data: [[1.5, 2.], [3e0, -4]] --><dim>2</dim><dim>2</dim></port>
                <port id="1"> <!-- [[0, 1], [1, 0]] of shape [2, 2] --><dim>2</dim><dim>2</dim></port>
            </input>
            <output><port id="2"><dim>2</dim></port></output>
        </layer>"""
    path = tmp_path / "lists.md"
    path.write_text(f"```\n{lists}\n```")
    assert not irrun.check(path)
    (parsed,) = load_all(path)
    assert not isinstance(parsed, irrun.ReadError)
    data, indices = (contents for contents, _ in parsed.model.contents.values())
    assert data.tolist() == [[1.5, 2], [3, -4]]
    assert indices.tolist() == [[0, 1], [1, 0]]


def test_a_page_without_examples(tmp_path: Path) -> None:
    """Nothing is wrong with it, but it is no model."""
    path = tmp_path / "page.md"
    path.write_text("# Title\n\nNo `<layer ...>` here.\n")
    assert not irrun.check(path)
    with pytest.raises(irrun.ReadError, match="no <layer> example"):
        irrun.read_model(path)
    for command, status in (("check", 0), ("run", 2), ("show", 2), ("check --fix", 0)):
        assert CliRunner().invoke(cli, [*command.split(), str(path)]).exit_code == status


# what a regular expression could stumble over, of any length
HOSTILE: list[Callable[[int], str]] = [
    lambda n: "<layer " * n,
    lambda n: "<pre>" * n,
    lambda n: "&lt;layer " * n,
    lambda n: "```\n" * n,
    lambda n: "> " * n,
    lambda n: "::\n\n" * n,
    lambda n: f"<pre>{'<!-- ' * n}",
    lambda n: f"::\n\n <layer ><port>{'... ' * n}",
    lambda n: f"::\n\n <layer ><port><dim>{'a_' * n}!</dim></port></layer>",
    lambda n: f"::\n\n <layer ><port><dim>{'a ' * n}!</dim></port></layer>",
    lambda n: f"```\n<layer ><input><port><dim>2<!-- {'[' * n} {'1' * n} --></dim></port></layer>",
]


@pytest.mark.parametrize("written", HOSTILE, ids=lambda written: written(1).replace("\n", " "))
@pytest.mark.parametrize("ending", ["rst", "md", "html", "txt"])
def test_the_time_of_a_hostile_document_grows_with_its_length(
    ending: str, written: Callable[[int], str], tmp_path: Path
) -> None:
    """Four times as long, it takes four times as much of the processor; if each character met each, 16 times."""
    path = tmp_path / f"page.{ending}"

    def took(length: int) -> float:
        path.write_text(written(length))
        began = time.process_time()
        irrun.check(path)
        return time.process_time() - began

    least = 0.05  # what is quicker is noise
    assert min(took(20_000) for _ in range(2)) < 9 * max(least, max(took(5_000) for _ in range(2)))


@pytest.mark.parametrize("lost", [1, 40, 120])
def test_a_file_with_a_damaged_head_is_not_a_page(lost: int, tmp_path: Path) -> None:
    net = Net()
    net.result(net.add("ReLU", [net.parameter("f32", "2")], [("FP32", "2")]))
    path = tmp_path / "net.xml"
    start = net.text.index("<net")
    path.write_text(net.text[start + lost :])
    assert [finding.code for finding in irrun.check(path)] == ["IR001"]
