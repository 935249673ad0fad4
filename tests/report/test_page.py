"""The page, in a headless Chromium: clicks, search, keys, addresses, colours, and how fast it opens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irrun.build as b
from browser import Browser, Tab
from irrun.ir.write import save_model
from irrun.report import collect
from irrun.report.page import page
from named_networks import bert
from nets import Net
from places import SAMPLES
from reported_models import TWO, blocks, chain, shared_activation

pytestmark = pytest.mark.processes

PAGE = Path(page.__code__.co_filename).parent / "page"

Open = Callable[..., Tab]


def drawn(tab: Tab) -> set[str]:
    """The names and labels of the nodes that the graph shows."""
    return set(tab.run("[...document.querySelectorAll('.node .name')].map(e => e.textContent)"))


def heading(tab: Tab) -> str:
    return tab.text("#panel h2")


def node(tab: Tab, name: str) -> str:
    """The selector of the node with this name below its type."""
    id = tab.run(
        f"[...document.querySelectorAll('.node')].find(e => e.querySelector('.name').textContent === {name!r})?.id"
    )
    assert id, f"{name} is not drawn"
    return f"#{id}"


def test_a_click_shows_what_is_known_of_a_layer(show: Open) -> None:
    tab = show(SAMPLES / "convnet.xml")
    assert heading(tab) == "convnet"
    assert drawn(tab) >= {"image", "conv", "pool", "logits", "out"}
    tab.press("0")  # show the whole graph
    tab.click(node(tab, "logits"))
    assert heading(tab) == "MatMul"
    text = tab.text("#panel")
    for part in ("transpose_b", "f32 [1,10]", "Reshape flatten", "of a run", "std", "zeros"):
        assert part in text
    assert tab.run("document.querySelectorAll('#panel svg.histogram rect').length") == 8
    assert tab.run("decodeURIComponent(location.hash)") == "#layer=logits"
    assert tab.run("document.querySelectorAll('.edge.near path').length") == 2


def test_formulas_are_shown(show: Open) -> None:
    tab = show(SAMPLES / "convnet.xml", address="#layer=block1%2Fpool")
    assert heading(tab) == "MaxPool"
    assert "dim 2 = floor((28 - 2) / 2) + 1 = 14" in tab.text("#panel .formula")


def test_a_finding_jumps_to_its_layer(show: Open) -> None:
    tab = show(SAMPLES / "wrong_dim.xml")
    assert "1 error" in tab.text("#chips")
    tab.click("#panel .finding")
    assert heading(tab) == "Broadcast"
    assert "dim 3 is 48, inferred 50" in tab.text("#panel .finding")
    assert tab.run("document.querySelector('.node.selected .badge.error text').textContent") == "1"
    tab.press("Escape")
    assert heading(tab) == "broadcast_numpy"
    tab.press("n")
    assert heading(tab) == "Broadcast"


def test_search_opens_the_groups_around_a_layer(show: Open) -> None:
    tab = show(blocks(40), run=False)
    assert len(drawn(tab)) <= 60
    tab.press("/")
    tab.type("layers.33/mlp/2")
    assert tab.text("#hits li .name") == "/model/layers.33/mlp/2"
    tab.press("Enter")
    assert heading(tab) == "Sigmoid"
    assert tab.run("decodeURIComponent(location.hash)") == "#layer=/model/layers.33/mlp/2"
    assert tab.run("document.querySelectorAll('.node.selected').length") == 1
    tab.run("document.getElementById('search').value = ''")
    tab.press("/")
    tab.type("nothing like it")
    assert tab.text("#hits") == "no layer has this name"
    tab.press("Escape")
    assert tab.run("document.getElementById('hits').hidden")


def test_groups_open_and_close(show: Open) -> None:
    tab = show(blocks(40), run=False)
    tab.press("0")  # otherwise the first group may be outside of the window
    closed = tab.run("document.querySelectorAll('.node').length")
    group = tab.run("document.querySelector('.node.group').id")
    number = group.removeprefix("node-")
    tab.click(f"#{group}", times=2)
    opened = tab.run("document.querySelectorAll('.node').length")
    assert opened > closed
    assert tab.run(f"document.querySelector('.cluster[data-number=\"{number}\"]') !== null")
    tab.press("Enter")  # it is selected still
    assert tab.run("document.querySelectorAll('.node').length") == closed
    tab.press("Enter")
    tab.click(f'.cluster-title[data-number="{number}"] .handle text')
    assert tab.run("document.querySelectorAll('.node').length") == closed


def test_arrows_move_along_edges(show: Open) -> None:
    tab = show(SAMPLES / "elementwise.xml", address="#layer=add")
    tab.press("ArrowDown")
    assert heading(tab) == "Clamp"
    tab.press("ArrowUp")
    tab.press("ArrowUp")
    assert heading(tab) in ("Multiply", "Parameter")
    first = tab.text("#panel .sub")
    sideways = [tab.text("#panel .sub") for key in ("ArrowLeft", "ArrowRight") if tab.press(key) is None]
    assert set(sideways) | {first} == {"multiply", "b"}


def test_constants_are_shown_when_asked_for(show: Open) -> None:
    tab = show(SAMPLES / "elementwise.xml")
    assert "scale" not in drawn(tab)
    tab.press("c")
    assert "scale" in drawn(tab)
    tab.click("#constants")
    assert "scale" not in drawn(tab)
    tab.run("location.hash = '#layer=scale'")
    tab.wait("document.querySelector('#panel h2').innerText === 'Const'")
    assert "scale" in drawn(tab)


def test_zoom_fit_and_drag(show: Open) -> None:
    tab = show(SAMPLES / "convnet.xml")
    transform = "document.getElementById('world').style.transform"
    before = tab.run(transform)
    tab.press("+")
    closer = tab.run(transform)
    assert closer != before
    tab.press("-")
    tab.press("0")
    fitted = tab.run(transform)
    for kind, x in (("mousePressed", 200), ("mouseMoved", 260), ("mouseMoved", 320), ("mouseReleased", 320)):
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=300, button="left", buttons=1, clickCount=1)
    assert tab.run(transform) != fitted
    tab.call("Input.dispatchMouseEvent", type="mouseWheel", x=300, y=300, deltaX=0, deltaY=-200)
    tab.wait(f"{transform} !== {fitted!r}")


def test_colours(show: Open) -> None:
    feeds = {"a": np.ones((1, 3, 4), np.float32), "b": np.zeros((3, 1), np.float32)}
    tab = show(SAMPLES / "wrong_scale.xml", feeds, side=str(SAMPLES / "elementwise.xml"))
    assert "differs" in tab.text("#chips")
    modes = tab.run("[...document.querySelectorAll('#colour option')].map(e => e.value)")
    assert modes == ["type", "time", "error", "precision"]
    fills: dict[str, str] = {}
    for mode in modes:
        tab.run(
            f"(e => {{ e.value = '{mode}'; e.dispatchEvent(new Event('change')); }})(document.getElementById('colour'))"
        )
        fills[mode] = tab.run(f"getComputedStyle(document.querySelector('{node(tab, 'multiply')} .card')).fill")
        assert tab.text("#legend")
    assert fills["type"] == fills["precision"] != fills["time"]
    assert fills["error"] not in (fills["type"], fills["time"])
    tab.click(node(tab, "multiply"))
    assert "25% outside" in tab.text("#panel")
    assert "the first divergence" in tab.text("#panel")


def test_dark_and_light(show: Open) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    light, dark = show(SAMPLES / "elementwise.xml"), show(SAMPLES / "elementwise.xml", dark=True)
    colours = light.run(background), dark.run(background)
    assert colours[0] != colours[1]
    light.click("#theme")
    dark.press("t")
    assert (light.run(background), dark.run(background)) == (colours[1], colours[0])


def contrast(first: str, second: str) -> float:
    """The contrast of two colours as WCAG 2 defines it."""

    def luminance(colour: str) -> float:
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_texts_have_enough_contrast(show: Open, dark: bool) -> None:
    """4.5 is what WCAG asks for texts of this size."""
    tab = show(SAMPLES / "wrong_dim.xml", dark=dark)
    for text, ground in (
        ("#panel h2", "#panel"), ("#panel .sub", "#panel"), ("#panel .jump", "#panel"), (".chip", ".chip"),
        ("#panel .finding b", "#panel .finding"), ("#legend", "body"),
    ):  # fmt: skip
        colours = [
            tab.run(f"getComputedStyle(document.querySelector({selector!r})).{name}")
            for selector, name in ((text, "color"), (ground, "backgroundColor"))
        ]
        assert contrast(*colours) >= 4.5, (text, colours)


def test_help(show: Open) -> None:
    tab = show(SAMPLES / "elementwise.xml")
    tab.press("?")
    assert "next and previous finding" in tab.text("#keys")
    assert tab.run("document.getElementById('keys').open")


HOSTILE = "</script><img src=x onerror=\"document.title='owned'\"> '\\ \u202e {} \u2028 ${1}"


def test_names_bring_in_no_markup(show: Open) -> None:
    net = Net()
    x = net.parameter("f32", "2", name=HOSTILE)
    net.result(net.add("ReLU", [x], [TWO], name=f"{HOSTILE}/{HOSTILE}", names=HOSTILE, odd=HOSTILE), name="</title>")
    tab = show(net)
    tab.press("/")
    tab.type("relu")
    tab.press("Enter")
    assert heading(tab) == "ReLU"
    assert "<img src=x" in tab.text("#panel")
    assert "\\u202e" in tab.text("#panel")
    assert tab.run("document.images.length") == 0
    assert "owned" not in tab.run("document.title")
    assert tab.run("decodeURIComponent(location.hash)") == f"#layer={HOSTILE}/{HOSTILE}"


def test_other_scripts_do_not_run(show: Open) -> None:
    """The policy of the page stops a script and a request even if markup came in."""
    tab = show(SAMPLES / "elementwise.xml")
    tab.run("(e => { e.textContent = 'window.owned = 1'; document.body.append(e); })(document.createElement('script'))")
    assert tab.run("window.owned") is None
    assert tab.run("fetch('https://example.com').then(() => 'sent', () => 'refused')") == "refused"
    assert any("Content Security Policy" in problem for problem in tab.problems())
    tab.browser.events.clear()
    tab.call("Page.reload")
    tab.wait("document.documentElement?.dataset.drawn !== undefined")


def test_models_with_bodies(show: Open, tmp_path: Path) -> None:
    x = b.parameter([2], "f32", name="x")
    loop = b.Loop(3, True, x, body=lambda i, a: (True, b.Multiply(a, [2.0], name="twice")), name="loop")
    save_model(b.model(loop), tmp_path / "net.xml")
    tab = show(tmp_path / "net.xml")
    assert "twice" in drawn(tab)
    assert tab.run("document.querySelectorAll('.cluster').length") == 2
    tab.click(node(tab, "twice"))
    assert "3 times; the figures are of the last" in tab.text("#panel")
    assert tab.run("document.querySelectorAll('.edge.back').length") >= 1


def test_models_that_do_not_run(show: Open) -> None:
    net = Net()
    x = net.parameter("f32", "?", name="x")
    net.result(net.add("Nonsense", [x], [("FP32", "-1")], name="odd"))
    tab = show(net)
    assert "does not run" in tab.text("#chips")
    assert tab.text("#panel").count("IR201") == 1  # not again as the reason why the model does not run
    tab.click(node(tab, "odd"))
    assert "the model was not run" in tab.text("#panel")


def test_a_model_without_layers_to_show(show: Open) -> None:
    tab = show(Net())
    assert heading(tab) == "net"
    assert drawn(tab) == set()
    tab.press("ArrowDown")
    tab.press("0")


def wide() -> Net:
    """5,000 branches from one value to one Concat, in one group."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    branches = [net.add("ReLU", [x], [TWO], name=f"fan/{number}") for number in range(5000)]
    net.result(net.add("Concat", branches, [("FP32", "10000")], name="fan/all", axis=0))
    return net


@pytest.mark.parametrize("net", [wide, lambda: shared_activation(60)], ids=["fan of 5000", "shared module"])
def test_hard_graphs_are_drawn(net: Callable[[], Net], show: Open) -> None:
    tab = show(net(), run=False)
    assert 0 < len(drawn(tab)) <= 140
    group = tab.run("document.querySelector('.node.group')?.id")
    if group:
        tab.run(f"document.getElementById('{group}').dispatchEvent(new MouseEvent('dblclick', {{bubbles: true}}))")
        assert tab.run("document.querySelectorAll('.cluster').length") >= 1


@pytest.mark.parametrize("names", ["structured", "flat"])
def test_10000_layers_open_within_three_seconds(names: str, show: Open, browser: Browser, tmp_path: Path) -> None:
    """The time from the navigation to the first drawing, the best of three: other work may slow a single one."""
    if names == "structured":
        net = blocks(1000)  # 9 layers each
        assert len(net.layers) == 9002
        net = blocks(1111)
    else:
        net = Net()
        net.result(chain(net, net.parameter("f32", "2", name="x"), [f"node_{number}" for number in range(9998)]))
    assert len(net.layers) >= 10_000
    tab = show(net)
    times = [float(tab.run("performance.getEntriesByName('irrun-drawn')[0].startTime"))]
    address = tab.run("location.href")
    for _ in range(2):
        again = browser.open(address)
        times.append(float(again.run("performance.getEntriesByName('irrun-drawn')[0].startTime")))
        again.close()
    print(f"10,000 layers, {names} names: opened in {min(times) / 1000:.2f} s")
    assert min(times) < 3000, times
    tab.press("/")
    tab.type("77")
    tab.press("Enter")
    assert tab.run("document.querySelectorAll('.node.selected').length") == 1


def test_the_first_view_can_be_read(browser: Browser, tmp_path: Path) -> None:
    """At 1440×900, each text in the graph is at least 11 pixels high, no label lies on an edge, nor legend on a node."""
    report = collect(bert(2), runs=1)
    report.write(tmp_path / "report.html")
    tab = browser.open((tmp_path / "report.html").as_uri(), width=1440, height=900)
    assert tab.run("new DOMMatrix(getComputedStyle(document.getElementById('world')).transform).a") >= 1
    sizes = tab.run("[...document.querySelectorAll('#world text')].map(e => parseFloat(getComputedStyle(e).fontSize))")
    assert min(sizes) >= 11
    labels = "[...document.querySelectorAll('.edge.label')]"
    assert tab.run(f"{labels}.length") > 5
    assert tab.run(
        f"{labels}.every(e => {{ const [r, t] = [...e.children].map(c => c.getBBox());"
        " return r.width >= t.width && r.height >= t.height && getComputedStyle(e.children[0]).fillOpacity === '1'; })"
    )
    assert tab.run("[...document.querySelectorAll('#world > .edge')].map(e => e.className.baseVal).join().lastIndexOf"
                   "('data') < [...document.querySelectorAll('#world > .edge')].map(e => e.className.baseVal).join()"
                   ".indexOf('label')")  # fmt: skip
    legend, graph = (
        tab.run(f"(({{top, bottom}}) => [top, bottom])(document.getElementById('{name}').getBoundingClientRect())")
        for name in ("legend", "graph")
    )
    assert legend[1] <= graph[0]
    tab.close()


def test_the_page_works_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    """A notebook puts it into a document without an address. The test lets itself look into the frame."""
    shown = collect(SAMPLES / "convnet.xml", runs=1)._repr_html_()
    assert shown.startswith("<iframe ")
    assert 'sandbox="allow-scripts"' in shown
    opened = shown.replace('sandbox="allow-scripts"', 'sandbox="allow-scripts allow-same-origin"')
    (tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><html data-drawn=1><meta charset=utf-8>{opened}", "utf-8")
    tab = browser.open((tmp_path / "notebook.html").as_uri())
    inner = "document.querySelector('iframe').contentDocument"
    tab.wait(f"{inner}?.documentElement?.dataset.drawn")
    assert tab.run(f"{inner}.querySelector('#panel h2').textContent") == "convnet"
    tab.run(f"{inner}.querySelector('.node').dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert tab.run(f"{inner}.querySelector('#panel h2').textContent") == "Parameter"
    assert tab.problems() == []
    tab.close()


def test_the_layers_of_a_step_are_folded_and_timed(show: Open) -> None:
    """Forty layers in one step are a line until it is opened, and each has a share of the time."""
    net = Net()
    net.result(chain(net, net.parameter("f32", "2", name="x"), [f"node_{number}" for number in range(40)]))
    tab = show(net, address="#layer=node_7")
    assert tab.text("#panel summary") == "39 layers"
    assert not tab.run("document.querySelector('#panel details').open")
    assert "estimated by FLOPs and bytes" in tab.text("#panel")
    tab.press("Escape")
    assert "SLOWEST LAYERS" in tab.text("#panel").upper()


def test_modules_of_the_page_fit_together() -> None:
    """The page puts all modules into one scope: each name is defined once, and what is imported is exported."""
    defined: dict[str, str] = {}
    exported: dict[str, set[str]] = {}
    sources = {path.stem: path.read_text("utf-8") for path in PAGE.glob("*.js")}
    for module, source in sources.items():
        tops = re.findall(
            r"^(export )?(?:async )?(?:function\*?|const|let|class) (\w+|\[[^\]]*\])", source, re.MULTILINE
        )
        exported[module] = {name for export, name in tops if export}
        for _, names in tops:
            for name in re.findall(r"\w+", names):
                assert name not in defined, f"{name} is defined in {defined.get(name)} and {module}"
                defined[name] = module
    for module, source in sources.items():
        for names, other in re.findall(r'^import \{([^}]*)\} from "\./(\w+)\.js";', source, re.MULTILINE):
            wanted = {name.strip() for name in names.split(",")}
            assert wanted <= exported[other], f"{module} imports {wanted - exported[other]} from {other}"
            body = re.sub(r"^import[^;]*;", "", source, flags=re.MULTILINE)
            unused = {name for name in wanted if not re.search(rf"\b{name}\b", body)}
            assert not unused, f"{module} does not use {unused}"
        text = page({"model": {"name": "x"}, "file": "x.xml"})
        assert "\nimport " not in text
        assert "\nexport " not in text


def test_the_licence_of_the_library_is_in_the_page() -> None:
    text = page({"model": {"name": "x"}, "file": "x.xml"})
    assert "Copyright (c) 2012-2014 Chris Pettitt" in text
    assert "Permission is hereby granted" in text
    assert "sourceMappingURL" not in text
