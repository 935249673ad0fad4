"""irrun diff --format markdown: the comment, its picture, its size, and names that are no markup."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b
from nets import Net

GITHUB_LIMIT = 65_536
"""The most characters of a comment on GitHub."""


def _net(folder: Path, name: str, *, value: float = 1.0, kind: str = "Abs", extra: bool = False) -> None:
    net = Net()
    x = net.parameter("f32", "2", name="x")
    c = net.const("f32", "2", struct.pack("<2f", 1, value), name="c")
    last = net.add(kind, [net.add("Add", [x, c], [("FP32", "2")], name="a")], [("FP32", "2")], name="f")
    if extra:
        last = net.add("Sigmoid", [last], [("FP32", "2")], name="extra")
    net.result(last, name="y")
    net.save(folder, name)


def test_a_comment(call: Any, tmp_path: Path) -> None:
    _net(tmp_path, "a")
    _net(tmp_path, "b", value=3.0, kind="Exp", extra=True)
    lines = {
        file: {
            match[1]: number
            for number, text in enumerate((tmp_path / f"{file}.xml").read_text().splitlines(), 1)
            if (match := re.search(r'<layer .*name="(\w+)"', text))
        }
        for file in "ab"
    }
    f, y = (f"{lines['a'][name]} → {lines['b'][name]}".replace(f"{n} → {n}", str(n))
            for name in "fy" for n in [lines["b"][name]])  # fmt: skip
    result = call("diff", "a.xml", "b.xml", "--format", "markdown")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout == (
        "**`b.xml` differs from `a.xml`.**\n\n"
        '- 1 constant differs: largest error 2 absolute, 2 relative, least SNR -3.0 dB in "`c`"\n'
        "- 2 layers changed: 1 `Abs`, 1 `Result`\n"
        "- 1 layer only in `b.xml`: 1 `Sigmoid`\n\n"
        "```mermaid\n"
        "flowchart TD\n"
        'n0["Const<br/>c"]:::changed\n'
        'n1["Add<br/>a"]\n'
        'n2["Abs → Exp<br/>f"]:::changed\n'
        'n3["Result<br/>y"]:::changed\n'
        'n4["Sigmoid<br/>extra"]:::added\n'
        "n0 --> n1\n"
        "n1 --> n2\n"
        "n2 -. removed .-> n3\n"
        "n2 --> n4\n"
        "n4 --> n3\n"
        "classDef changed fill:#fff1c2,stroke:#9a6700,color:#1f2328\n"
        "classDef added fill:#d1f5d8,stroke:#1a7f37,color:#1f2328\n"
        "classDef removed fill:#ffdcd9,stroke:#cf222e,color:#1f2328\n"
        "```\n\n"
        "The picture shows layers that differ, with their neighbours (yellow: changed, green: added, red: removed).\n\n"
        "| | layer | line | difference |\n"
        "| --- | --- | --- | --- |\n"
        f"| changed | `Const` `c` | {lines['a']['c']} | `weights`: 1 of 2 elements (50 %) differ, max abs 2 at [1], "
        "max rel 2, SNR -3.0 dB |\n"
        f"| changed | `Abs` `f` | {f} | `type`: `Abs` → `Exp` |\n"
        f"| added | `Sigmoid` `extra` | {lines['b']['extra']} |  |\n"
        f"| changed | `Result` `y` | {y} | `input 0 reads`: `f` → `extra` |\n"
    )


def test_equal_models(call: Any, tmp_path: Path) -> None:
    _net(tmp_path, "a")
    _net(tmp_path, "b")
    result = call("diff", "a.xml", "b.xml", "--format", "markdown")
    assert (result.exit_code, result.stdout) == (0, "**`b.xml` is the same model as `a.xml`.**\n")
    (tmp_path / "b.bin").unlink()
    assert call("diff", "a.xml", "b.xml", "--format", "markdown").stdout == (
        "**`b.xml` is the same model as `a.xml`.**\n\n"
        "- `b.xml` has no .bin; the values of 1 constant were not compared\n"
        "- no other differences\n"
    )


def test_engines_have_no_comment(call: Any, tmp_path: Path) -> None:
    _net(tmp_path, "a")
    result = call("diff", "openvino:a.xml", "openvino:a.xml", "--format", "markdown")
    assert result.exit_code == 2
    assert "--format markdown is for files" in result.stderr


HOSTILE = 'a"]; n9["x|y`z</code></details> @me #1 %%{init}%% __bold__ 1. https://x.y\n```'


@pytest.mark.parametrize("everything", [False, True])
def test_a_name_is_no_markup(call: Any, tmp_path: Path, everything: bool) -> None:
    """In the picture, all but letters, digits, blanks and slashes is written as a number; in the table, all of it."""
    for name, batch in (("a", 1), ("b", 2)):
        x = b.parameter([batch, 2], name=HOSTILE)
        irrun.save_model(b.model({"y": b.ReLU(x, name=f"{HOSTILE} 2")}), tmp_path / f"{name}.xml")
    text = call("diff", "a.xml", "b.xml", "--format", "markdown", *(["--all"] if everything else [])).stdout
    assert text.count("```") == 2
    picture, table = text.split("```")[1:]
    labels = re.findall(r'^n\d+\["(.*?)"\](?::::\w+)?$', picture, re.MULTILINE)
    assert len(labels) == (3 if everything else 2)
    assert all(re.fullmatch(r"(?:\w|[ /→…]|#\d+;|<br/>)*", label) for label in labels)
    assert [label for label in labels if "__" in label or "<" in label.replace("<br/>", "")] == []
    rows = [line for line in table.splitlines() if line.startswith("| changed")]
    assert len(rows) == (2 if everything else 1)
    for row in rows:
        assert row.count("|") == 5
        name = row.split("<code>")[1].split("</code>")[0]
        read = re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), name)
        assert read.removesuffix(" 2") == HOSTILE.replace("\n", "\\n")
        assert not re.search(r"[^0-9A-Za-z &#;]", name)


def _blocks(path: Path, count: int, *, shift: float = 0, tanh: int = 0, half: bool = False) -> None:
    """Save ``count`` blocks of a product and a Gelu, the first ``tanh`` of them approximated, as in a long BERT."""
    values = np.arange(16, dtype=np.float32).reshape(4, 4) + np.float32(shift)
    x = b.parameter([-1, 4], name="embedded")
    for n in range(count):
        name = f"bert/encoder/layer.{n}/intermediate"
        weight = b.constant(values + np.float32(n), name=f"{name}/weight")
        if half:
            stored = b.constant((values + np.float32(n)).astype(np.float16), name=f"{name}/stored")
            weight = b.Convert(stored, destination_type="f32", name=f"{name}/weight")
        product = b.MatMul(x, weight, transpose_a=False, transpose_b=True, name=f"{name}/product")
        x = b.Gelu(product, approximation_mode="TANH" if n < tanh else "ERF", name=f"{name}/Gelu")
    irrun.save_model(b.model({"y": x}), path)


def test_a_long_model_fits_a_comment(call: Any, tmp_path: Path) -> None:
    """Each kind shows three layers and folds the others. The text says how many layers do not fit."""
    _blocks(tmp_path / "a.xml", 500)
    _blocks(tmp_path / "b.xml", 500, shift=0.5, tanh=99)
    text = call("diff", "a.xml", "b.xml", "--format", "markdown").stdout
    assert 50_000 < len(text.encode()) < GITHUB_LIMIT - 4_096
    rows = re.findall(r"^\| changed \| `(\w+)`", text, re.MULTILINE)
    (left,) = re.findall(r"^(\d+) layers do not fit; `irrun diff --all` lists them\.$", text, re.MULTILINE)
    assert len(rows) + int(left) == 500 + 99
    assert rows[:6].count("Gelu") == rows[:6].count("Const") == 3
    assert text.count("<details>") == text.count("</details>") == text.count("<summary>")
    assert "<summary>96 more: <code>~ Gelu (approximation_mode)</code></summary>" in text


def test_a_weight_is_one_node(call: Any, tmp_path: Path) -> None:
    """The Convert belongs to the weight. The picture shows one node, which feeds the product."""
    _blocks(tmp_path / "a.xml", 1)
    _blocks(tmp_path / "b.xml", 1, half=True)
    picture = call("diff", "a.xml", "b.xml", "--format", "markdown").stdout.split("```")[1]
    assert picture.splitlines()[2:5] == [
        'n0["Const → Convert<br/>…encoder/layer#46;0/intermediate/weight"]:::changed',
        'n1["MatMul<br/>…layer#46;0/intermediate/product"]',
        "n0 --> n1",
    ]


def test_the_picture_is_bounded(call: Any, tmp_path: Path) -> None:
    """A layer with many consumers shows four of them, and the picture ends at forty nodes."""
    for name, axis in (("a", 0), ("b", 1)):
        x = b.Softmax(b.parameter([2, 2], name="x"), axis=axis, name="wide")
        outputs: dict[str, Any] = {f"y{n}": b.ReLU(x, name=f"reader{n}") for n in range(9)}
        z = b.parameter([2, 2], name="z")
        for n in range(19):
            z = b.Softmax(b.ReLU(z, name=f"between{n}"), axis=axis, name=f"step{n}")
        irrun.save_model(b.model({**outputs, "z": z}), tmp_path / f"{name}.xml")
    text = call("diff", "a.xml", "b.xml", "--format", "markdown", "--all").stdout
    nodes = re.findall(r"^n\d+\[", text, re.MULTILINE)
    assert 36 <= len(nodes) <= 40
    assert len(re.findall(r"<br/>reader", text)) == 4
    drawn = len(re.findall(r":::changed$", text, re.MULTILINE))
    assert f"the first {drawn} of 20 layers; at most 4 producers and 4 consumers of each)." in text


def test_a_body_is_a_box(call: Any, tmp_path: Path) -> None:
    for name, kind in (("a", b.Tanh), ("b", b.Sigmoid)):
        x = b.parameter([2, 2], name="x")
        loop = b.Loop(3, True, x, body=lambda i, value, kind=kind: (True, kind(value, name="inner")), name="loop/1")
        irrun.save_model(b.model({"y": loop}), tmp_path / f"{name}.xml")
    lines = call("diff", "a.xml", "b.xml", "--format", "markdown").stdout.splitlines()
    box = lines[lines.index('subgraph body0["loop/1/body"]') :]
    assert 'n0["Tanh → Sigmoid<br/>inner"]:::changed' in box[: box.index("end")]


def test_a_folded_neighbour_has_its_colour(call: Any, tmp_path: Path) -> None:
    """Three of thirty removed layers are listed. The next one in the chain is drawn beside them, as removed."""
    for name, count in (("a", 30), ("b", 0)):
        x = b.parameter([2, 2], name="x")
        for n in range(count):
            x = b.ReLU(x, name=f"relu{n}")
        irrun.save_model(b.model({"y": b.Tanh(x, name="tanh")}), tmp_path / f"{name}.xml")
    text = call("diff", "a.xml", "b.xml", "--format", "markdown").stdout
    assert "<summary>27 more: <code>- ReLU</code></summary>" in text
    nodes = re.findall(r'^n\d+\["ReLU<br/>(\w+)"\](.*)$', text, re.MULTILINE)
    assert ("relu3", ":::removed") in nodes
    assert {status for _, status in nodes} == {":::removed"}
