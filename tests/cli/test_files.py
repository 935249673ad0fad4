"""Files that are written: whole or not at all, never the model itself, and without litter."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import irrun
from ir.test_extract import CONVNET
from irrun.files import NewFile, replace_pair, sweep
from irrun.running.dump import Dump


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, data: bytes) -> None:
    with NewFile(path) as new:
        new.file.write(data)
        new.finish()


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    with NewFile(path) as new:
        new.file.write(b"new")
        new.file.flush()
        assert path.read_bytes() == b"old"
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["a"])
    write(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"new", ["a"])


def test_the_longest_name_that_a_file_can_have(tmp_path: Path) -> None:
    path = tmp_path / ("ü" * 120 + "123456789012345")
    write(path, b"new")
    assert names(tmp_path) == [path.name]


def test_litter_is_removed_but_not_what_is_being_written(tmp_path: Path) -> None:
    for name in (".a.00000000.part", ".a.00000000.old.part", ".b.00000000.part", ".a.x.part", "a.00000000.part"):
        (tmp_path / name).touch()
    with NewFile(tmp_path / "a") as one:
        write(tmp_path / "a", b"other")
        one.finish()
    assert names(tmp_path) == [".a.x.part", ".b.00000000.part", "a", "a.00000000.part"]
    sweep(tmp_path)
    assert names(tmp_path) == [".a.x.part", "a", "a.00000000.part"]


def test_a_dump_sweeps_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".000000_x_0.npy.00000000.part").touch()
    with Dump(tmp_path):
        pass
    assert names(tmp_path) == ["index.json"]


@pytest.mark.parametrize("killed_at", [0, 1, 2], ids=["before-the-bin", "between", "after"])
def test_a_pair_is_never_mixed(killed_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever rename is the last one: the .xml is the old one with the old .bin, the new one, or not there."""
    xml, bin = tmp_path / "m.xml", tmp_path / "m.bin"
    xml.write_bytes(b"old")
    bin.write_bytes(b"old")
    replace, calls = Path.replace, [0]

    def counting(self: Path, target: Path) -> Path:
        pair = (xml.read_bytes() if xml.exists() else None, bin.read_bytes())
        assert pair in {(None, b"old"), (None, b"new"), (b"old", b"old")}
        calls[0] += 1
        if calls[0] > killed_at:
            raise OSError("no")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", counting)
    with NewFile(bin) as weights, NewFile(xml) as model:
        weights.file.write(b"new")
        model.file.write(b"new")
        if killed_at < 2:
            with pytest.raises(OSError, match="no"):
                replace_pair(weights, model)
        else:
            replace_pair(weights, model)
    assert [p for p in names(tmp_path) if p.endswith(".part")] == []
    pair = (xml.read_bytes() if xml.exists() else None, bin.read_bytes())
    assert pair == [(b"old", b"old"), (None, b"new"), (b"new", b"new")][killed_at]


def test_a_pair_that_is_replaced_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, path = irrun.read_model(CONVNET), tmp_path / "m.xml"
    irrun.save_model(model, path)
    short = irrun.extract(model, "logits")
    read, rounds = irrun.api.read_bytes, []

    def racing(file: Path) -> bytes:
        data = read(file)
        if not rounds:
            rounds.append(1)
            irrun.save_model(short, path, compact=True)
        return data

    monkeypatch.setattr(irrun.api, "read_bytes", racing)
    assert len(irrun.read_model(path).layers) == len(short.layers)


def test_nothing_replaces_the_model(call, tmp_path: Path) -> None:
    model = irrun.read_model(CONVNET)
    irrun.save_model(model, tmp_path / "m.xml")
    os.link(tmp_path / "m.bin", tmp_path / "other.bin")
    os.symlink("m.xml", tmp_path / "link.xml")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for options in (
        ["run", "m.xml", "-o", "m.xml"],
        ["run", "m.xml", "-o", "m.bin"],
        ["run", "m.xml", "-o", "./link.xml"],
        ["run", "m.xml", "--trace", "m.bin"],
        ["run", "m.xml", "-w", "other.bin", "-o", "m.bin"],
        ["extract", "m.xml", "-o", "m.xml"],
        ["extract", "m.xml", "-o", "link.xml"],
        ["extract", "m.xml", "-o", "other.xml"],
    ):
        result = call(*options)
        assert (result.exit_code, "choose another file" in result.stderr) == (2, True), options
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
