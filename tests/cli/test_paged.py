"""irrun paged: faults planted into the paged form of a decoder are found at their token, block and layer."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irrun
from irrun.debug.paged import serving
from language_models import decoder
from places import SAMPLES
from rewritten_models import attention, rewritten, set_constant


@pytest.fixture(scope="module")
def folder(ov: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stateful decoder and its paged form, by OpenVINO."""
    folder = tmp_path_factory.mktemp("paged")
    rewritten(ov, folder, decoder(50))
    return folder


def test_the_text(folder: Path, call: Any) -> None:
    """The allowed difference is 0.0001 of the largest logit, and the last line is the verdict."""
    models = str(folder / "stateful.xml"), str(folder / "paged.xml")
    done = call("paged", *models)
    allowed, verdict = done.stdout.splitlines()[-2:]
    found = re.fullmatch(
        r"a token agrees if each logit differs by at most (\S+) \(0\.0001 × (\S+), the largest absolute logit of the "
        r"stateful model\)",
        allowed,
    )
    assert found
    assert float(found[1]) == pytest.approx(1e-4 * float(found[2]), rel=0.01)
    assert verdict == "verdict: both forms agree in 6 schedules, 806 tokens"
    done = call("paged", *models, "--tokens", "60")
    lines = done.stdout.splitlines()
    assert "not run: evicted block: it takes 66 tokens, not 60: raise --tokens" in lines
    assert lines[-1].startswith("verdict: both forms agree in 5 schedules, ")
    record = json.loads(call("paged", *models, "--tokens", "60", "--format", "json").stdout)
    assert record["omitted"] == {"evicted block": "it takes 66 tokens, not 60: raise --tokens"}


def test_the_largest_logit(folder: Path) -> None:
    """The largest logit is that of OpenVINO's stateful run, too."""
    import openvino as ov

    first = np.random.default_rng(0).integers(0, 50, (2, 70))
    first[1, :32] = first[0, :32]
    compiled = ov.Core().compile_model(folder / "stateful.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    largest = 0.0
    for prompt in first:
        names = {port.any_name for port in compiled.inputs}
        feeds = {
            "input_ids": prompt[None], "attention_mask": np.ones((1, 70), np.int64),
            "position_ids": np.arange(70)[None], "beam_idx": np.zeros(1, np.int32),
        }  # fmt: skip
        done = compiled.create_infer_request().infer({name: array for name, array in feeds.items() if name in names})
        largest = max(largest, float(np.abs(done[0]).max()))
    assert serving(str(folder / "stateful.xml"), str(folder / "paged.xml")).allowed == pytest.approx(
        1e-4 * largest, rel=1e-3
    )


def test_both_agree(folder: Path, call: Any) -> None:
    done = call("paged", str(folder / "stateful.xml"), str(folder / "paged.xml"), "--format", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert found["agrees"]
    assert [(s["name"], s["tokens"]) for s in found["schedules"]] == [
        ("whole prompts", 140), ("permuted blocks", 140), ("pieces", 140), ("interleaved", 140), ("shared prefix", 106), ("evicted block", 140),
    ]  # fmt: skip
    assert all(schedule["difference"] < found["allowed"] / 100 for schedule in found["schedules"])


def test_the_state_of_a_convolution(ov: Any, tmp_path: Path) -> None:
    """OpenVINO makes PagedCausalConv1D. Its table has blocks as the caches have, and a server may name a wrong one."""
    rewritten(ov, tmp_path, decoder(50, kernel=3))
    models = str(tmp_path / "stateful.xml"), str(tmp_path / "paged.xml")
    found = serving(*models)
    assert found.agrees
    assert "PagedCausalConv1D" in {layer.type for layer in irrun.read_model(models[1]).layers.values()}
    states = {
        "0_la.past_lens": np.array([0], np.int32), "1_la.past_lens": np.array([40], np.int32),
        "0_la.block_indices": np.array([3, 2, 0], np.int32), "1_la.block_indices": np.array([0, 0], np.int32),
        "0_la.block_indices_begins": np.array([0, 3], np.int32), "1_la.block_indices_begins": np.array([0, 2], np.int32),
        "0_la.cache_interval": np.array([32], np.int32), "1_la.cache_interval": np.array([32], np.int32),
    }  # fmt: skip
    assert serving(*models, calls=str(_calls(tmp_path / "calls.npz", **states))).agrees
    states["1_la.block_indices"] = np.array([2, 0], np.int32)
    fault = serving(*models, calls=str(_calls(tmp_path / "calls.npz", **states))).schedules[0].fault
    assert fault is not None
    assert (fault.position, fault.layer) == (40, "convolution/PagedCausalConv1D")
    assert fault.cause == (
        "the state in block 2 is the state after 32 tokens of sequence 0; "
        "block 0 holds that after 40 tokens of sequence 0"
    )


def _scale(folder: Path) -> str:
    return set_constant(folder, attention(irrun.read_model(folder / "broken.xml"), 1), 9, np.float32(0.5))


def _window(folder: Path) -> str:
    return set_constant(folder, attention(irrun.read_model(folder / "broken.xml"), 0), 10, np.int32(33))


def _weight(folder: Path) -> str:
    """Change a weight of the projection behind the second attention."""
    model = irrun.read_model(folder / "broken.xml")
    order = [model.layers[id] for id in model.order]
    behind = order[order.index(attention(model, 1)) :]
    return set_constant(folder, next(layer for layer in behind if layer.type == "MatMul"), 1, np.float32(9))


def _numbered(path: Path, seed: int) -> None:
    """Name all layers of a file but its inputs by their types and random numbers, as converters do. Drop tensor names."""
    text = path.read_text()
    numbers = iter(np.random.default_rng(seed).permutation(text.count("<layer ")).tolist())

    def name(match: re.Match[str]) -> str:
        number = next(numbers)
        is_input = match[3] == "Parameter"
        return match[0] if is_input else f'<layer id="{match[1]}" name="{match[3].lower()}_{number}" type="{match[3]}"'

    text = re.sub(r'<layer id="(\d+)" name="([^"]*)" type="(\w+)"', name, text)
    path.write_text(re.sub(r'(<port id="\d+" precision="\w+") names="(?!input_ids|logits)[^"]*"', r"\1", text))


@pytest.mark.parametrize("seed", [0, 1])
def test_names_are_no_evidence(folder: Path, tmp_path: Path, seed: int) -> None:
    """Numbers name other constants in the other file. The cause is the changed weight all the same."""
    for name in ("stateful", "paged"):
        for suffix in (".xml", ".bin"):
            shutil.copy(folder / f"{name}{suffix}", tmp_path / f"{name.replace('paged', 'broken')}{suffix}")
    layer = _weight(tmp_path)
    id = next(id for id, own in irrun.read_model(tmp_path / "broken.xml").layers.items() if own.name == layer)
    _numbered(tmp_path / "stateful.xml", 2 * seed)
    _numbered(tmp_path / "broken.xml", 2 * seed + 1)
    model = irrun.read_model(tmp_path / "broken.xml")
    feed = model.feeds[id][1]
    assert feed is not None
    first = serving(str(tmp_path / "stateful.xml"), str(tmp_path / "broken.xml")).schedules[0].fault
    assert first is not None
    assert (first.position, first.layer) == (0, model.layers[id].name)
    constant = re.escape(model.layers[feed[0]].name)
    said = rf'the constant "{constant}" \(input 1\) is 9 at \[0, 0\], not \S+; corrected, the token agrees'
    assert re.fullmatch(said, first.cause or "")


def test_two_faults_in_a_layer(folder: Path, tmp_path: Path, call: Any) -> None:
    """A weight differs, and the product transposes it: neither correction alone helps, so that neither is the cause."""
    for suffix in (".xml", ".bin"):
        shutil.copy(folder / f"paged{suffix}", tmp_path / f"broken{suffix}")
    _weight(tmp_path)
    model = irrun.read_model(tmp_path / "broken.xml")
    order = [model.layers[id] for id in model.order]
    product = next(layer for layer in order[order.index(attention(model, 1)) :] if layer.type == "MatMul")
    text = (tmp_path / "broken.xml").read_text()
    (tmp_path / "broken.xml").write_text(
        re.sub(rf'(<layer id="{product.id}" .*?transpose_b=")(\w+)', _other, text, count=1, flags=re.DOTALL)
    )
    done = call("paged", str(folder / "stateful.xml"), str(tmp_path / "broken.xml"))
    assert done.exit_code == 1
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "cause: not proved" in lines
    assert lines[-1].startswith("verdict: the paged form differs in 6 of 6 schedules, ")


def _other(match: re.Match[str]) -> str:
    return match[1] + ("false" if match[2] == "true" else "true")


@pytest.mark.parametrize(
    ("plant", "position", "block", "cause"),
    [
        (_scale, 1, 0, r'(scale is 0.5; 0.353553 gives the value of "|the constant ".*" \(input 9\) is 0.5 at )'),
        (_window, 33, 1, 'sliding_window is 33; 68 or more, or 0, gives the value of "'),
        (_weight, 0, 0, r'the constant ".*" \(input 1\) is 9 at \[0, 0\], not '),
    ],
)
def test_a_planted_fault(
    folder: Path, tmp_path: Path, plant: Callable[[Path], str], position: int, block: int, cause: str
) -> None:
    """A wrong scale shows at the second token, a window of 33 tokens at token 33, which is the second of block 1."""
    for suffix in (".xml", ".bin"):
        shutil.copy(folder / f"paged{suffix}", tmp_path / f"broken{suffix}")
    layer = plant(tmp_path)
    found = serving(str(folder / "stateful.xml"), str(tmp_path / "broken.xml"))
    assert not found.agrees
    first = found.schedules[0]
    assert first.name == "whole prompts"
    assert first.fault is not None
    assert (first.fault.position, first.fault.block, first.fault.layer) == (position, block, layer)
    assert re.match(cause, first.fault.cause or "")


def test_other_models(call: Any) -> None:
    done = call("paged", str(SAMPLES / "convnet.xml"), str(SAMPLES / "convnet.xml"))
    assert done.exit_code == 2
    assert "no input block_indices" in done.stderr
    done = call("paged", "a.xml", "b.xml", "--tokens", "10")
    assert done.exit_code == 2
    assert "raise --tokens" in done.stderr


def _calls(path: Path, **changed: Any) -> Path:
    """Write two calls of a server: 40 tokens in the blocks 2 and 0, and one more. ``changed`` replaces entries."""
    ids = np.random.default_rng(3).integers(0, 50, 41)
    entries: dict[str, Any] = {}
    for number, (begin, end) in enumerate([(0, 40), (40, 41)]):
        own = {
            "sequences": np.zeros(end - begin, np.int64),
            "input_ids": ids[begin:end],
            "position_ids": np.arange(begin, end),
            "max_context_len": np.array(end, np.int32),
            "past_lens": np.array([begin], np.int32),
            "subsequence_begins": np.array([0, end - begin], np.int32),
            "block_indices": np.array([2, 0], np.int32),
            "block_indices_begins": np.array([0, 2], np.int32),
        }
        entries |= {f"{number}.{name}": array for name, array in own.items()}
    entries |= {name.replace("_", ".", 1): array for name, array in changed.items()}
    np.savez(path, **{name: array for name, array in entries.items() if array is not None})
    return path


def test_recorded_calls(folder: Path, tmp_path: Path, call: Any) -> None:
    models = str(folder / "stateful.xml"), str(folder / "paged.xml")
    done = call("paged", *models, "--calls", str(_calls(tmp_path / "calls.npz")), "--format", "json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0
    assert [(s["name"], s["calls"], s["tokens"]) for s in found["schedules"]] == [("recorded calls", 2, 41)]


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"1_past_lens": np.array([39], np.int32)}, "call 1: past_lens[0] is 39, not 40; corrected, the token agrees"),
        ({"1_position_ids": np.array([7])}, "call 1: position_ids[0] is 7, not 40; corrected, the token agrees"),
        ({"1_max_context_len": np.array(20, np.int32)}, "call 1: max_context_len is 20, not 41; corrected, the token"),
        (
            {"1_block_indices": np.array([1, 0], np.int32)},
            "the keys of block 1, slots 0 to 31, are zeros, which no call has written; block 2 holds those of tokens "
            "0 to 31 of sequence 0",
        ),
        (
            {"1_block_indices": np.array([2, 2], np.int32)},
            "the keys of block 2, slots 0 to 7, are those of tokens 0 to 7 of sequence 0; block 0 holds those of tokens "
            "32 to 39 of sequence 0",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)  # fmt: skip
def test_faults_in_calls(folder: Path, tmp_path: Path, call: Any, changed: dict[str, Any], cause: str) -> None:
    calls = _calls(tmp_path / "calls.npz", **changed)
    done = call("paged", str(folder / "stateful.xml"), str(folder / "paged.xml"), "--calls", str(calls))
    assert done.exit_code == 1
    assert cause in " ".join(done.stdout.split())


@pytest.mark.parametrize("name", ["key_cache.1", "parameter_9"])
def test_a_lost_row(folder: Path, tmp_path: Path, call: Any, name: str) -> None:
    """A server that moves caches passes them again, here the keys without those of token 5, in slot 5 of block 2.

    It passes them by the name of the tensor; the Parameter may have another ``name``.
    """
    models = str(folder / "stateful.xml"), str(tmp_path / "paged.xml")
    shutil.copy(folder / "paged.bin", tmp_path)
    text = (folder / "paged.xml").read_text()
    (tmp_path / "paged.xml").write_text(re.sub(r'(<layer id="\d+" name=")key_cache\.1"', rf'\g<1>{name}"', text))
    calls = _calls(tmp_path / "calls.npz")
    with np.load(calls) as file:
        first = {name[2:]: file[name] for name in file.files if name.startswith("0.") and name != "0.sequences"}
    executable = irrun.compile(models[1])
    blank = {f"{kind}_cache.{n}": np.zeros((3, 4, 32, 8), np.float32) for kind in ("key", "value") for n in (0, 1)}
    executable({**first, **blank})
    keys = executable.state[name].copy()
    keys[2, :, 5] = 0
    done = call("paged", *models, "--calls", str(_calls(calls, **{"1_key_cache.1": keys})))
    assert done.exit_code == 1
    assert "the keys of block 2, slots 5, are zeros" in " ".join(done.stdout.split())


def test_a_cache_that_no_layer_reads(folder: Path, tmp_path: Path) -> None:
    """Attention 1 has the keys of attention 0, and the caches have tensors of the usual names in other Parameters."""
    shutil.copy(folder / "paged.bin", tmp_path)
    model = irrun.read_model(folder / "paged.xml")
    layers = attention(model, 0), attention(model, 1)
    own, other = (model.feeds[layer.id][3] for layer in layers)
    assert own is not None
    assert other is not None
    text = (folder / "paged.xml").read_text()
    for number, id in enumerate((own[0], other[0])):
        text = text.replace(f'name="{model.layers[id].name}" type="Parameter"', f'name="p{number}" type="Parameter"')
    edge = f'from-layer="{{}}" from-port="0" to-layer="{layers[1].id}" to-port="3"'
    assert text.count(edge.format(other[0])) == 1
    (tmp_path / "paged.xml").write_text(text.replace(edge.format(other[0]), edge.format(own[0])))
    fault = serving(str(folder / "stateful.xml"), str(tmp_path / "paged.xml")).schedules[0].fault
    assert fault is not None
    assert fault.layer == layers[1].name
    assert fault.cause == 'input 3 (key_cache) is "p0", not "p1"; corrected, the token agrees'


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("1_past_lens", None, "call 1 has no entry 1.past_lens"),
        ("0_sequences", np.zeros(3, np.int64), "0.sequences is (3,), and 0.input_ids (40,)"),
        ("1_sequences", np.array([7]), "sequences are numbered [0, 7], not from 0 on"),
        ("0_input_ids", None, "call 0 has no entry 0.input_ids"),
    ],
)
def test_wrong_recordings(folder: Path, tmp_path: Path, call: Any, name: str, value: Any, message: str) -> None:
    path = _calls(tmp_path / "calls.npz", **{name: value})
    done = call("paged", str(folder / "stateful.xml"), str(folder / "paged.xml"), "--calls", str(path))
    assert done.exit_code == 2
    assert message in done.stderr
