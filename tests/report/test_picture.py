"""The picture of a model, read back from its SVG."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import irrun
from irrun import build as b
from irrun.report.picture import picture
from reported_models import blocks

LONG = "a name of more than thirty-four letters <&>"
SVG = "{http://www.w3.org/2000/svg}"


@dataclass
class Card:
    """A node of a picture: its tooltip, its texts, and its box."""

    title: str
    texts: list[str]
    left: float
    top: float
    width: float
    height: float
    is_stack: bool
    is_end: bool
    colour: str

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.left + self.width and self.top <= y <= self.top + self.height


def cards(root: ElementTree.Element) -> dict[str, Card]:
    found: dict[str, Card] = {}
    for group in root.iter(f"{SVG}g"):
        rectangles = group.findall(f"{SVG}rect")
        box = {key: float(rectangles[-1].attrib[key]) for key in ("x", "y", "width", "height", "rx")}
        texts = [text.text or "" for text in group.findall(f"{SVG}text")]
        title = group.findtext(f"{SVG}title") or ""
        path = group.find(f"{SVG}path")
        found[title] = Card(
            title, texts, box["x"], box["y"], box["width"], box["height"], len(rectangles) > 1,
            box["rx"] == box["height"] / 2, "" if path is None else path.attrib["class"],
        )  # fmt: skip
        for text in group.findall(f"{SVG}text"):
            assert found[title].holds(float(text.attrib["x"]), float(text.attrib["y"]))
    return found


def ends(root: ElementTree.Element) -> list[tuple[tuple[float, float], tuple[float, float], bool]]:
    """The first and the last point of each edge, and whether it is dashed."""
    found = []
    for path in root.iter(f"{SVG}path"):
        if path.attrib["class"].startswith("edge"):
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d", path.attrib["d"])]
            assert len(numbers) % 6 == 2  # M and a point, then three points for each curve
            found.append(((numbers[0], numbers[1]), (numbers[-2], numbers[-1]), "dashed" in path.attrib["class"]))
    return found


def _model() -> irrun.Model:
    x = b.parameter([2, 3], name="x")
    product = b.MatMul(x, b.constant(np.ones((3, 5), np.float32), name="weights"), name="product")
    loop = b.Loop(3, True, product, body=lambda i, a: (True, b.Tanh(a, name="inner")), name="loop")
    first, second = b.ReLU(loop, name="first"), b.ReLU(product, name=LONG)
    return b.model({"sum": b.Add(first, second, name="total")})


def test_layers_and_values() -> None:
    root = ElementTree.fromstring(picture(_model()))
    nodes = cards(root)
    by_type = {card.texts[0]: card for card in nodes.values()}
    assert set(nodes) == {
        "x", "product", "loop", "loop/parameter_0", "loop/parameter_1", "loop/inner", "loop/result_0", "loop/result_1",
        "loop/const_3", "first", LONG, "total", "sum/result",
    }  # fmt: skip
    assert nodes["product"].texts == ["MatMul", "product"]
    assert nodes[LONG].texts == ["ReLU", "a name of more t…-four letters <&>"]
    assert {type for type, card in by_type.items() if card.is_end} == {"Parameter", "Result"}
    assert not any(card.is_stack for card in nodes.values())
    colours = {type: card.colour for type, card in by_type.items()}
    assert colours.pop("Parameter") == colours.pop("Result") == ""
    assert colours["ReLU"] == "c0"  # the most frequent type
    assert sorted(colours.values()) == [f"c{number}" for number in range(6)]
    shapes = [text.text for text in root.iter(f"{SVG}text") if text.attrib.get("class") == "shape"]
    assert shapes == ["[2,3]", *["[2,5]"] * 7]


def test_a_node_is_as_wide_as_its_texts() -> None:
    """A letter of a type takes 7.4 pixels, one of a name 5.9; there is room on both sides, and no node is tiny."""
    for card in cards(ElementTree.fromstring(picture(_model()))).values():
        type, name = card.texts
        needed = max(len(type) * 7.4, len(name) * 5.94)
        assert card.width >= 86
        assert card.width == 86 or 24 <= card.width - needed <= 32


def test_an_edge_leads_down_from_node_to_node() -> None:
    root = ElementTree.fromstring(picture(_model()))
    nodes, seen = cards(root), set()
    for (x, y), (to_x, to_y), dashed in ends(root):
        side = 1 if y < to_y else -1  # the edge back from the end of a body to its beginning leads up
        first = next(card for card in nodes.values() if card.holds(x, y - side))
        last = next(card for card in nodes.values() if card.holds(to_x, to_y + side))
        seen.add((first.title, last.title, side, dashed))
    assert seen == {
        ("x", "product", 1, False), ("product", LONG, 1, False), (LONG, "total", 1, False),
        ("first", "total", 1, False), ("total", "sum/result", 1, False),
        ("product", "loop/parameter_1", 1, True), ("loop/parameter_1", "loop/inner", 1, False),
        ("loop/inner", "loop/result_1", 1, False), ("loop/result_1", "loop/parameter_1", -1, True),
        ("loop/result_1", "first", 1, True), ("loop/const_3", "loop/result_0", 1, False),
    }  # fmt: skip
    width, height = (float(root.attrib[key]) for key in ("width", "height"))
    for card in nodes.values():
        assert 0 <= card.left < card.left + card.width <= width
        assert 0 <= card.top < card.top + card.height <= height


def test_a_large_model_is_drawn_with_groups(tmp_path: Path) -> None:
    """Each block has eight layers without its constant. Up to 200 nodes are layers; above, 60 nodes are the most."""
    layers = cards(ElementTree.fromstring(picture(blocks(22).save(tmp_path))))
    assert len(layers) == 22 * 8 + 2
    assert not any(card.is_stack for card in layers.values())
    grouped = cards(ElementTree.fromstring(picture(blocks(40).save(tmp_path))))
    assert len(grouped) <= 60
    assert {"attn", "mlp"} <= {card.texts[0] for card in grouped.values() if card.is_stack}
    assert [card.texts[1] for card in grouped.values() if card.texts[0] == "mlp"] == ["Sigmoid ×4"]
