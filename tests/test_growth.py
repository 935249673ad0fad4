"""The time to check a file grows with its length: no element, attribute or example meets each of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import irrun

PORT = '<port id="{}" precision="FP32"><dim>{}</dim></port>'
EXAMPLE = (
    '<layer type="ReLU"><input><port id="0"><dim>2</dim></port></input>'
    '<output><port id="1"><dim>{}</dim></port></output></layer>\n'
)


def _net(data: str = "", inputs: int = 1, given: str = "2", edges: Sequence[str] = ()) -> str:
    """Return a model of a Parameter of two elements, a Concat and a Result, in few lines."""
    ports = "".join(PORT.format(i, given) for i in range(inputs))
    joined = f'<data axis="0"{data}/><input>{ports}</input><output>{PORT.format(inputs, 2 * inputs)}</output>'
    feeding = [f'<edge from-layer="0" from-port="0" to-layer="1" to-port="{i}"/>' for i in range(inputs)]
    leaving = f'<edge from-layer="1" from-port="{inputs}" to-layer="2" to-port="0"/>'
    return (
        '<net name="n" version="11"><layers><layer id="0" name="x" type="Parameter" version="opset1">'
        f'<data element_type="f32" shape="2"/><output>{PORT.format(0, 2)}</output></layer>'
        f'<layer id="1" name="c" type="Concat" version="opset1">{joined}</layer>'
        f'<layer id="2" name="y" type="Result" version="opset1"><input>{PORT.format(0, 2 * inputs)}</input></layer>'
        f"</layers><edges>{''.join([*feeding, leaving, *edges])}</edges></net>"
    )


def _page(examples: str) -> str:
    return f"Examples\n\n```xml\n{examples}```\n"


FILES: dict[str, Callable[[int], str]] = {
    "edges.xml": lambda count: _net(edges=['<edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>'] * count),
    "attributes.xml": lambda count: _net("".join(f' a{i}="1"' for i in range(count))),
    "attributes-in-lines.xml": lambda count: _net("".join(f'\na{i}="1"' for i in range(count))),
    "misspelt.xml": lambda count: _net("".join(f' axis{i}="1"' for i in range(count))),
    "wrong-inputs.xml": lambda count: _net(inputs=count, given="3"),
    "wrong-dims.xml": lambda count: _net().replace("<dim>2</dim>", "<dim>x</dim>" * count, 1),
    "examples.md": lambda count: _page(EXAMPLE.format(2)) * count,
    "examples-with-findings.md": lambda count: _page(EXAMPLE.format(3)) * count,
    "examples-in-a-line.html": lambda count: f"<html><pre>{EXAMPLE.strip().format(2).replace('<', '&lt;') * count}",
    "unclosed.md": lambda count: _page("<layer type='ReLU'>\n" * count),
    "unclosed.txt": lambda count: "Examples\n" + "<layer type='ReLU'>\n" * count,
    "unclosed-deeper.md": lambda count: _page("".join(" " * (i % 90) + "<layer type='a'>\n" for i in range(count))),
}


@pytest.mark.parametrize("name", FILES)
def test_the_time_of_a_file_grows_with_its_length(name: str, tmp_path: Path) -> None:
    """Eight times as many parts take about eight times as much of the processor; with each pair, 64 times."""

    def took(count: int) -> float:
        path = tmp_path / name
        path.write_text(FILES[name](count))
        began = time.process_time()
        irrun.check(path)
        return time.process_time() - began

    took(50)  # imports
    least = 0.05  # what is quicker is noise
    assert min(took(4000) for _ in range(2)) < 24 * max(least, took(500))
