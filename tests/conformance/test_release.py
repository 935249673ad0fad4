"""The archive of the suite: reproducible, whole, and read by the lines that its page prints."""

from __future__ import annotations

import hashlib
import re
import tarfile
from pathlib import Path

from irrun.conformance.suite import CONTENT
from places import ROOT
from recorded import suite
from suite_release import FILES, release


def test_the_same_contents_give_the_same_archive(tmp_path: Path) -> None:
    first, second = release(tmp_path / "a"), release(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        files = {member.name.partition("/")[2]: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]
    assert files.keys() == {*FILES, "SHA256SUMS"}
    for line in files["SHA256SUMS"].decode().splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256(files[name]).hexdigest() == digest


def test_the_contents_have_a_version_that_the_changes_explain() -> None:
    assert suite().content == CONTENT
    assert re.search(rf"^## {re.escape(CONTENT)}$", (ROOT / "docs" / "conformance-changes.md").read_text("utf-8"), re.M)
