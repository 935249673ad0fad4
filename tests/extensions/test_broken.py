"""Tokenizers with one fault each: ``irrun check`` names the layer and the clause."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import irrun
from extensions.test_recorded import _contents, _model, folder

__all__ = ["folder"]

pytest.importorskip("regex", reason="patterns are checked with the package regex")


class Files:
    """The XML and the .bin of a tokenizer, to break the first layer of a type."""

    def __init__(self, name: str, kind: str, type: str) -> None:
        stem = f"{name}/openvino_{kind}"
        self.root = ET.fromstring(_contents()[f"{stem}.xml"])
        self.bin = bytearray(_contents()[f"{stem}.bin"])
        self.layer = next(layer for layer in self.root.iter("layer") if layer.get("type") == type)
        self.data = self.layer.find("data")
        if self.data is None:
            self.data = ET.SubElement(self.layer, "data")

    def ports(self) -> list[ET.Element]:
        return self.layer.findall("input/port")

    def edge(self, port: int) -> ET.Element:
        """The edge that leads to an input, which counts from the end if it is negative."""
        wanted = (self.layer.get("id"), self.ports()[port].get("id"))
        return next(e for e in self.root.iter("edge") if (e.get("to-layer"), e.get("to-port")) == wanted)

    def constant(self, port: int) -> tuple[ET.Element, ET.Element]:
        """The Const that feeds an input, if need be through a Convert, and its ``<data>``."""
        id = self.edge(port).get("from-layer")
        source = next(layer for layer in self.root.iter("layer") if layer.get("id") == id)
        if source.get("type") == "Convert":
            id = next(e for e in self.root.iter("edge") if e.get("to-layer") == id).get("from-layer")
            source = next(layer for layer in self.root.iter("layer") if layer.get("id") == id)
        assert source.get("type") == "Const", source.attrib
        data = source.find("data")
        assert data is not None
        return source, data

    def save(self, folder: Path) -> Path:
        path = folder / "broken.xml"
        ET.ElementTree(self.root).write(path)
        path.with_suffix(".bin").write_bytes(self.bin)
        return path


Edit = Callable[[Files], None]


def attribute(name: str, value: str) -> Edit:
    return lambda files: files.data.set(name, value) if files.data is not None else None


def contents(port: int, value: int | bytes, index: int = 0, dtype: str = "i4") -> Edit:
    """Overwrite an element of a constant, or its first bytes."""

    def edit(files: Files) -> None:
        data = files.constant(port)[1]
        offset, size = int(data.get("offset", "")), int(data.get("size", ""))
        new = value if isinstance(value, bytes) else np.array(value, dtype).tobytes()
        at = offset + index * np.dtype(dtype).itemsize
        assert at + len(new) <= offset + size
        files.bin[at : at + len(new)] = new

    return edit


def text(port: int, value: bytes) -> Edit:
    """Replace a text constant by another one, of any length."""

    def edit(files: Files) -> None:
        const, data = files.constant(port)
        data.set("offset", str(len(files.bin)))
        data.set("size", str(len(value)))
        data.set("shape", str(len(value)))
        files.bin += value
        _declare(const.find("output/port"), len(value))
        _declare(files.ports()[port], len(value))

    return edit


def shorter(port: int) -> Edit:
    """Take the last element from a constant, also where its ports declare it."""

    def edit(files: Files) -> None:
        const, data = files.constant(port)
        count = int(data.get("shape", "")) - 1
        data.set("size", str(int(data.get("size", "")) // (count + 1) * count))
        data.set("shape", str(count))
        ids = {const.get("id"), files.edge(port).get("from-layer")}
        for layer in files.root.iter("layer"):
            if layer.get("id") in ids:
                for own in layer.iter("port"):
                    _declare(own, count)
        _declare(files.ports()[port], count)

    return edit


def _declare(port: ET.Element | None, count: int) -> None:
    assert port is not None
    for dim in port.iter("dim"):
        dim.text = str(count)


def swap(first: int, second: int) -> Edit:
    """Connect two inputs the wrong way round, with what their ports declare."""

    def edit(files: Files) -> None:
        one, other = files.edge(first), files.edge(second)
        for key in ("from-layer", "from-port"):
            a, b = one.get(key, ""), other.get(key, "")
            one.set(key, b)
            other.set(key, a)
        a, b = files.ports()[first], files.ports()[second]
        a.attrib["precision"], b.attrib["precision"] = b.attrib["precision"], a.attrib["precision"]
        a[:], b[:] = list(b), list(a)

    return edit


def without(port: int) -> Edit:
    """Remove an input."""

    def edit(files: Files) -> None:
        edges, inputs = files.root.find("edges"), files.layer.find("input")
        assert edges is not None
        assert inputs is not None
        edges.remove(files.edge(port))
        inputs.remove(files.ports()[port])

    return edit


def renamed(type: str) -> Edit:
    return lambda files: files.layer.set("type", type)


def version(value: str) -> Edit:
    return lambda files: files.layer.set("version", value)


@dataclass(frozen=True)
class Broken:
    id: str
    name: str
    type: str
    edit: Edit
    code: str
    label: str | None = None
    kind: str = "tokenizer"


ROWS = [
    Broken("split-mode", "gpt2", "RegexSplit", attribute("behaviour", "isolated"), "IR203"),
    Broken("split-empty-mode", "gpt2", "RegexSplit", attribute("behaviour", ""), "IR203"),
    Broken("split-invert", "gpt2", "RegexSplit", attribute("invert", "yes"), "IR203"),
    Broken("split-none", "gpt2", "RegexSplit", attribute("max_splits", "0"), "IR403", "C5"),
    Broken("split-minus-two", "gpt2", "RegexSplit", attribute("max_splits", "-2"), "IR403", "C5"),
    Broken("split-many", "gpt2", "RegexSplit", attribute("max_splits", "many"), "IR203"),
    Broken("split-attribute", "gpt2", "RegexSplit", attribute("behavior", "isolate"), "IR204"),
    Broken("split-parenthesis", "gpt2", "RegexSplit", text(-1, rb"(a|b"), "IR406", "C6"),
    Broken("split-range", "gpt2", "RegexSplit", text(-1, rb"[z-a]+"), "IR406", "C6"),
    Broken("split-nothing-to-repeat", "gpt2", "RegexSplit", text(-1, rb"*a"), "IR406", "C6"),
    Broken("split-property", "gpt2", "RegexSplit", text(-1, rb"\p{Klingon}"), "IR406", "C6"),
    Broken("split-not-utf8", "gpt2", "RegexSplit", text(-1, b"a\xff"), "IR406", "C6"),
    Broken("split-verb", "gpt2", "RegexSplit", text(-1, rb"a(*COMMIT)b"), "IR201"),
    Broken("split-byte", "gpt2", "RegexSplit", text(-1, rb"\C+"), "IR201"),
    Broken("split-ports", "gpt2", "RegexSplit", swap(2, 4), "IR301"),
    Broken("split-no-pattern", "gpt2", "RegexSplit", without(-1), "IR403", "C4"),
    Broken("normal-parenthesis", "bert-cased", "RegexNormalization", text(-2, rb"x)"), "IR406", "C4"),
    Broken("normal-flag", "bert-cased", "RegexNormalization", attribute("global_replace", "maybe"), "IR203"),
    Broken("normal-no-pattern", "bert-cased", "RegexNormalization", without(-1), "IR403", "C3"),
    Broken("special-class", "gpt2", "SpecialTokensSplit", text(-1, rb"([<\|)"), "IR406", "C5"),
    Broken("form", "qwen", "CharsMapNormalization", attribute("normalization_form", "nfx"), "IR203"),
    Broken("no-form", "qwen", "CharsMapNormalization", attribute("normalization_form", "identity"), "IR403", "C4"),
    Broken("charsmap-length", "t5", "CharsMapNormalization", contents(-1, 2**30), "IR403", "C3"),
    Broken("charsmap-text", "t5", "CharsMapNormalization", text(-1, b"no map"), "IR403", "C3"),
    Broken("bpe-begin-after-end", "gpt2", "BPETokenizer", contents(5, 10**6, 7), "IR403", "C3"),
    Broken("bpe-beyond", "gpt2", "BPETokenizer", contents(6, 10**8, 7), "IR403", "C3"),
    Broken("bpe-negative", "gpt2", "BPETokenizer", contents(5, -1, 3), "IR403", "C3"),
    Broken("bpe-sizes", "gpt2", "BPETokenizer", shorter(6), "IR403", "C3"),
    Broken("bpe-unknown-merge", "gpt2", "BPETokenizer", contents(10, b"\xfe\xfe\xfe"), "IR403", "C4"),
    Broken("bpe-merge-begin", "gpt2", "BPETokenizer", contents(8, -5), "IR403", "C4"),
    Broken("bpe-merge-sizes", "gpt2", "BPETokenizer", shorter(9), "IR403", "C4"),
    Broken("bpe-capacity", "gpt2", "BPETokenizer", attribute("cache_capacity", "lots"), "IR203"),
    Broken("bpe-inputs", "gpt2", "BPETokenizer", without(-1), "IR403", "C6"),
    Broken("bpe-added-ids", "gpt2", "BPETokenizer", shorter(17), "IR403", "C5"),
    Broken("wordpiece-unknown", "bert-cased", "WordpieceTokenizer", contents(-1, 10**6, dtype="i8"), "IR403", "C4"),
    Broken("wordpiece-vocabulary", "bert-cased", "WordpieceTokenizer", contents(5, 10**7, 3), "IR403", "C3"),
    Broken("wordpiece-length", "bert-cased", "WordpieceTokenizer", attribute("max_bytes_per_word", "1e2"), "IR203"),
    Broken("unigram-scores", "t5", "UnigramTokenizer", shorter(-1), "IR403", "C4"),
    Broken("unigram-unknown", "t5", "UnigramTokenizer", attribute("unk_token_id", "700000"), "IR403", "C5"),
    Broken("unigram-unknown-text", "t5", "UnigramTokenizer", attribute("unk_token_id", "<unk>"), "IR203"),
    Broken("encoder-values", "word-level", "VocabEncoder", shorter(6), "IR403", "C3"),
    Broken("truncate-side", "gpt2", "Truncate", text(-2, b"rigth"), "IR403", "C4"),
    Broken("truncate-mode", "gpt2", "Truncate", text(-1, b"longest"), "IR403", "C4"),
    Broken("segments-ids", "bert-cased", "CombineSegments", shorter(-1), "IR403", "C2"),
    Broken("segments-end", "bert-cased", "CombineSegments", contents(1, 99), "IR403", "C1"),
    Broken("dense-max", "gpt2", "RaggedToDense", attribute("m_pad_max_length", "true"), "IR403", "C5"),
    Broken("dense-side", "gpt2", "RaggedToDense", attribute("pad_right", "perhaps"), "IR203"),
    Broken("decoder-vocabulary", "gpt2", "VocabDecoder", contents(1, 10**7, 3), "IR403", "C2", "detokenizer"),
    Broken("decoder-skipped", "gpt2", "VocabDecoder", attribute("skip_tokens", "a,b"), "IR203", None, "detokenizer"),
    Broken("utf8-mode", "llama2", "UTF8Validate", attribute("replace_mode", "ignore"), "IR203", None, "detokenizer"),
    Broken("split-opset", "gpt2", "RegexSplit", version("opset1"), "IR201"),
    Broken("bpe-opset", "gpt2", "BPETokenizer", version("opset15"), "IR201"),
    Broken("truncate-new-opset", "gpt2", "Truncate", version("opset99"), "IR201"),
    Broken("range-extension", "gpt2", "Range", version("extension"), "IR201"),
    Broken("gather-extension", "bert-cased", "Gather", version("extension"), "IR201"),
    Broken("fuse", "gpt2", "FuzeRagged", renamed("FuseRagged"), "IR201", None, "detokenizer"),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_one_finding_at_the_right_layer(row: Broken, tmp_path: Path) -> None:
    files = Files(row.name, row.kind, row.type)
    row.edit(files)
    found = irrun.check(files.save(tmp_path)).diagnostics
    assert [(d.code, d.layer, d.label) for d in found] == [(row.code, files.layer.get("name"), row.label)], found


@pytest.mark.parametrize(
    ("type", "wrong", "help"),
    [
        ("RegexSplit", "opset1", 'write version="extension"'),
        ("RegexSplit", "opset99", 'write version="extension"'),
        ("Range", "extension", 'write version="opset1" or later'),
        ("StringTensorUnpack", "opset1", 'write version="opset15" or later'),
    ],
)
def test_the_advice_names_the_right_version(type: str, wrong: str, help: str, tmp_path: Path) -> None:
    files = Files("gpt2", "tokenizer", type)
    files.layer.set("version", wrong)
    assert [d.help for d in irrun.check(files.save(tmp_path)).diagnostics] == [help]


def test_there_are_many() -> None:
    assert len(ROWS) >= 40


@pytest.mark.parametrize("name", ["gpt2", "t5", "bert-cased", "word-level"])
def test_the_files_are_whole_before(name: str, folder: Path) -> None:
    assert not irrun.check(_model(folder, name)).diagnostics
