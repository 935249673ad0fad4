"""irrun paged: what is at fault is corrected, and the token then agrees."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.model import Layer
from language_models import decoder
from rewritten_models import attention, broken_copy, named_cause, rewritten, rewritten_file, set_constant


@pytest.fixture(scope="module")
def folder(ov: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stateful decoder and its paged form, by OpenVINO."""
    folder = tmp_path_factory.mktemp("paged")
    rewritten(ov, folder, decoder(50))
    return folder


def test_two_faults(folder: Path, tmp_path: Path) -> None:
    """Weights of two layers differ. Neither correction alone makes the token agree, and both together do."""
    products, weight = broken_copy(folder, tmp_path)
    first = products[-2].name
    set_constant(tmp_path, products[-2], 1, np.float32(9))
    set_constant(tmp_path, products[-1], 1, np.float32(9))
    names = [re.escape(weight(one).name) for one in (next(p for p in products if p.name == first), products[-1])]
    layer, cause = named_cause(folder, tmp_path)
    assert layer == first
    said = [rf'the constant "{name}" \(input 1\) is 9 at \[0, 0\], not \S+; ' for name in names]
    assert re.fullmatch(f"{''.join(said)}both corrected, the token agrees", cause)


def _exchange(path: Path, a: Layer, b: Layer) -> None:
    """Let two Const layers of a file have the contents of each other."""
    text, offsets = path.read_text(), (a.attributes["offset"], b.attributes["offset"])
    for layer, offset in zip((a, b), reversed(offsets)):
        text = re.sub(rf'(<layer id="{layer.id}" .*?offset=")\d+', rf"\g<1>{offset}", text, count=1, flags=re.DOTALL)
    path.write_text(text)


def _products(products: list[Layer], *names: str) -> list[Layer]:
    return [next(product for product in products if product.name == name) for name in names]


@pytest.mark.parametrize("names", [("0/down", "1/down"), ("0/q", "0/k"), ("0/q", "1/q")], ids=" ".join)
def test_exchanged_weights(folder: Path, tmp_path: Path, names: tuple[str, str]) -> None:
    """Each has the values of the other. Layers paired by contents would form a cycle with the wires exchanged."""
    products, weight = broken_copy(folder, tmp_path)
    a, b = (weight(product) for product in _products(products, *names))
    _exchange(tmp_path / "broken.xml", a, b)
    _, cause = named_cause(folder, tmp_path)
    assert cause == (
        f'the constant "{a.name}" (input 1) holds the values of "{b.name}" of the stateful model; '
        f'the constant "{b.name}" (input 1) holds the values of "{a.name}" of the stateful model; '
        "both corrected, the token agrees"
    )


def test_a_fault_behind_a_harmless_change(folder: Path, tmp_path: Path) -> None:
    """Tanh is odd: with both products negated, layer 0 has the same values. The cause is the weight of layer 1."""
    products, weight = broken_copy(folder, tmp_path)
    up, down, output = _products(products, "0/up", "0/down", "1/o")
    for product in (up, down):
        own = weight(product).attributes
        offset, size = int(own["offset"]), int(own["size"])
        values = np.frombuffer((tmp_path / "broken.bin").read_bytes()[offset : offset + size], np.float32)
        set_constant(tmp_path, product, 1, -values)
    set_constant(tmp_path, output, 1, np.float32(9))
    layer, cause = named_cause(folder, tmp_path)
    assert layer == "1/o"
    changed = [f'; also differs: the constant "{weight(one).name}" (input 1) is -1 times' for one in (up, down)]
    first, *others = re.split("(?=; also differs)", cause)
    assert re.fullmatch(
        rf'the constant "{weight(output).name}" \(input 1\) is 9 at \[0, 0\], not \S+; corrected, the token agrees',
        first,
    )
    assert len(others) == 2
    assert all(other.startswith(said) for other, said in zip(others, changed))


@pytest.mark.parametrize("type", ["u8", "bf16"])
def test_caches_of_low_precision(folder: Path, tmp_path: Path, type: str) -> None:
    """The caches of layer 1 have the type of the file, and round keys and values."""
    broken_copy(folder, tmp_path)
    text, precision = (tmp_path / "broken.xml").read_text(), type.upper()
    for kind in ("key", "value"):
        layer = re.search(rf'<layer id="\d+" name="{kind}_cache.1".*?</layer>', text, re.DOTALL)
        assert layer is not None
        changed = re.sub(r'element_type="\w+"', f'element_type="{type}"', layer[0])
        changed = re.sub(r'precision="\w+"', f'precision="{precision}"', changed)
        text = text.replace(layer[0], changed)
    (tmp_path / "broken.xml").write_text(text)
    _, cause = named_cause(folder, tmp_path)
    name = {"u8": "uint8", "bf16": "bfloat16"}[type]
    assert (
        cause == f"the precision of key_cache.1 and value_cache.1 is {name}, not float32; corrected, the token agrees"
    )


def test_exchanged_tables(folder: Path, tmp_path: Path, call: Any) -> None:
    """Attention 1 refuses every call: its past_lens are the blocks, and its blocks are past_lens."""
    broken_copy(folder, tmp_path)
    model = irrun.read_model(tmp_path / "broken.xml")
    layer = attention(model, 1)
    text = (tmp_path / "broken.xml").read_text()
    for position, other in ((5, 7), (7, 5)):
        feed = model.feeds[layer.id][other]
        assert feed is not None
        edge = rf'from-layer="\d+"( from-port="0" to-layer="{layer.id}" to-port="{position}")'
        text, count = re.subn(edge, rf'from-layer="{feed[0]}"\1', text)
        assert count == 1
    (tmp_path / "broken.xml").write_text(text)
    models = str(folder / "stateful.xml"), str(tmp_path / "broken.xml")
    done = call("paged", *models, "--format", "json")
    assert done.exit_code == 1
    fault = json.loads(done.stdout)["schedules"][0]["fault"]
    assert (fault["layer"], fault["difference"]) == (layer.name, None)
    assert fault["cause"] == (
        'input 5 (past_lens) is "block_indices", not "past_lens"; '
        'input 7 (block_indices) is "past_lens", not "block_indices"; corrected, all tokens of the schedule agree'
    )


def test_rounded_weights(ov: Any, folder: Path, tmp_path: Path) -> None:
    rewritten_file(ov, folder / "stateful.xml", tmp_path / "broken.xml", compress=True)
    _, cause = named_cause(folder, tmp_path)
    assert re.fullmatch(r'weights are rounded to f16: ".*" and \d+ others; corrected, the token agrees', cause)


def test_a_difference_that_no_token_shows(folder: Path, tmp_path: Path, call: Any) -> None:
    """The embedding of a token that no prompt has differs."""
    broken_copy(folder, tmp_path)
    model = irrun.read_model(tmp_path / "broken.xml")
    layer = next(layer for layer in model.layers.values() if layer.type == "Gather" and layer.name == "embeddings")
    prompts = np.random.default_rng(0).integers(0, 50, (2, 70))
    unread = min({*range(50)} - {*prompts.ravel().tolist()})
    feed = model.feeds[layer.id][0]
    assert feed is not None
    name, own = model.layers[feed[0]].name, model.layers[feed[0]].attributes
    offset = int(own["offset"])
    table = np.frombuffer((tmp_path / "broken.bin").read_bytes()[offset : offset + int(own["size"])], np.float32)
    table = table.reshape(50, 32).copy()
    table[unread] = 50
    set_constant(tmp_path, layer, 0, table)
    models = str(folder / "stateful.xml"), str(tmp_path / "broken.xml")
    done = call("paged", *models)
    assert done.exit_code == 0
    note = f'note: the files differ in 1 constant (first "{name}", which Gather "embeddings" reads); these tokens'
    assert f"{note} did not show it, more --tokens may" in " ".join(done.stdout.split())
    found = json.loads(call("paged", *models, "--format", "json").stdout)
    assert found["content"] == {"constants": 1, "layers": 0, "first": name, "reader": 'Gather "embeddings"'}
    assert json.loads(call("paged", models[0], str(folder / "paged.xml"), "--format", "json").stdout)["content"] is None


def test_nan(folder: Path, tmp_path: Path, call: Any) -> None:
    """A row of NaN is named. JSON has no NaN, and null stands for it."""
    products, weight = broken_copy(folder, tmp_path)
    (output,) = _products(products, "1/o")
    set_constant(tmp_path, output, 1, np.full(32, np.nan, np.float32))
    done = call("paged", str(folder / "stateful.xml"), str(tmp_path / "broken.xml"), "--format", "json")
    first = json.loads(done.stdout)["schedules"][0]
    assert (first["difference"], first["fault"]["difference"]) == (None, None)
    said = f'the constant "{weight(output).name}" (input 1) is NaN at 0 of axis 0; corrected, the token agrees'
    assert first["fault"]["cause"] == said
