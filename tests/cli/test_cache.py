"""irrun cache: what is kept on disk, and how to delete it."""

import json
from pathlib import Path
from typing import Any

import pytest

from irrun.fleet.cache import Cache

RESULTS, KERNELS = "IRRUN_CACHE_DIR", "NUMBA_CACHE_DIR"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two results, a kernel, an unfinished one, and files that are not irrun's."""
    monkeypatch.delenv(KERNELS, raising=False)
    monkeypatch.setenv(RESULTS, str(tmp_path / "cache"))
    cache = Cache(tmp_path / "cache")
    for number in range(2):
        cache.put(f"{number}" * 64, {"key": "value"})
    kernels = tmp_path / "cache" / "kernels"
    kernels.mkdir()
    for name in (
        "panels.multiply.0123456789abcdef.fedcba9876543210.o",
        "a.b.0123456789abcdef.0123456789abcdef.o.x_1.tmp",
    ):
        (kernels / name).write_bytes(bytes(1024))
    (kernels / "notes.txt").write_text("mine")
    (tmp_path / "cache" / "model.json").write_text("mine")
    return tmp_path / "cache"


def shown(call: Any, *options: str) -> list[tuple[str, int]]:
    record = json.loads(call("cache", "--format", "json", *options).stdout)
    return [(row["name"], row["files"]) for row in record["caches"]]


def test_what_is_kept(call: Any, folder: Path) -> None:
    assert shown(call) == [("results", 2), ("compiled kernels", 2)]
    lines = call("cache").stdout.splitlines()
    assert lines[0] == f"results           {folder}"
    assert lines[2:] == [f"compiled kernels  {folder / 'kernels'}", "                  2 files, 2.0 KiB"]


def test_only_what_irrun_wrote_is_deleted(call: Any, folder: Path) -> None:
    assert "deleted 2 files" in call("cache", "--clear").stdout
    assert shown(call) == [("results", 0), ("compiled kernels", 0)]
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert left == ["kernels/notes.txt", "model.json"]


def test_an_empty_cache_leaves_no_folder(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESULTS, str(tmp_path / "cache"))
    monkeypatch.setenv(KERNELS, str(tmp_path / "kernels"))
    Cache(tmp_path / "cache").put("0" * 64, {})
    call("cache", "--clear")
    assert not (tmp_path / "cache").exists()
    assert call("cache", "--clear").exit_code == 0


def test_no_cache(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RESULTS, "")
    monkeypatch.delenv(KERNELS, raising=False)
    assert call("cache").stdout.count("not kept: IRRUN_CACHE_DIR is empty") == 2
