"""Which files --watch checks again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from irrun.cli import _watch


def test_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pause is followed by what changed in it; where nothing did, by the next pause."""
    a, b, c, weights = (tmp_path / name for name in ("a.xml", "b.xml", "c.xml", "b.bin"))

    def nothing() -> None: ...

    actions: list[Callable[[], object]] = [
        nothing, lambda: b.write_text("<longer/>"), nothing, nothing, lambda: c.write_text("<c/>"), lambda: weights.write_bytes(b"1"),
        lambda: weights.write_bytes(b"12"), lambda: a.unlink(), nothing, lambda: b.replace(a), lambda: (a.unlink(), c.unlink()),
    ]  # fmt: skip
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        actions.pop(0)()

    monkeypatch.setattr(_watch.time, "sleep", sleep)
    for path in (a, b):
        path.write_text("<a/>")
    seen = _watch.changes(lambda: sorted(str(path) for path in tmp_path.glob("*.xml")), None)
    found = [tuple([Path(file).name for file in files] for files in next(seen)) for _ in range(8)]
    assert found == [
        (["a.xml", "b.xml"], ["a.xml", "b.xml"]),
        (["a.xml", "b.xml"], ["b.xml"]),
        (["a.xml", "b.xml", "c.xml"], ["c.xml"]),
        (["a.xml", "b.xml", "c.xml"], ["b.xml"]),
        (["a.xml", "b.xml", "c.xml"], ["b.xml"]),
        (["b.xml", "c.xml"], []),
        (["a.xml", "c.xml"], ["a.xml"]),
        ([], []),
    ]
    assert not actions
    assert set(pauses) == {_watch._PAUSE_SECONDS}


def test_shared_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are named belong to every file."""
    model, weights = tmp_path / "a.xml", tmp_path / "other.bin"
    model.write_text("<a/>")
    monkeypatch.setattr(_watch.time, "sleep", lambda seconds: weights.write_bytes(b"123"))
    seen = _watch.changes(lambda: [str(model)], str(weights))
    assert [next(seen) for _ in range(2)] == [([str(model)], [str(model)])] * 2
