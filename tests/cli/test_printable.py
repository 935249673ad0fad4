"""Whatever a file or a file name contains, only printable characters reach the terminal, and only the lines of irrun."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from nets import Net

EVIL = "a\u009b31m\u202e\n::error::forged"
"""A C1 control, a change of direction, a line break, and a command of GitHub."""


def _model(folder: Path) -> Path:
    net = Net()
    x = net.parameter("f32", "2,3", name="EVIL")
    net.result(net.add("ReLU", [x], [("FP32", "2,4")], name="EVIL2", names="EVIL3"), name="EVIL4")
    path = net.save(folder)
    text = path.read_text()
    name = escape(EVIL, {"\n": "&#10;"})
    path.write_text(text.replace("EVIL", name), "utf-8")
    return path


@pytest.mark.parametrize(
    "options",
    [
        ["check", "net.xml"],
        ["check", "net.xml", "--format", "concise"],
        ["check", "net.xml", "--format", "github"],
        ["check", "net.xml", "--format", "junit"],
        ["check", "net.xml", "--format", "gitlab"],
        ["check", "net.xml", "--shape", f"{EVIL}=[1]"],
        ["check", "net.xml", "--shape", EVIL],
        ["check", EVIL],
        ["check", EVIL, "--format", "github"],
        ["check", "net.xml", "--select", EVIL],
        ["run", "net.xml", "--no-strict"],
        ["run", "net.xml"],
        ["run", "net.xml", "-i", EVIL],
        ["run", "net.xml", "-i", f"{EVIL}={EVIL}"],
        ["run", "net.xml", "-i", f"{EVIL}={EVIL}.npy"],
        ["run", "net.xml", "--tap", EVIL],
        ["run", "net.xml", "-o", f"{EVIL}/x"],
        ["run", "net.xml", "--profile", "--no-strict"],
        ["run", EVIL],
        ["show", "net.xml"],
        ["show", "net.xml", "--memory"],
        ["why", "net.xml"],
        ["why", "net.xml", EVIL],
        ["why", "net.xml", f"{EVIL}2"],
        ["extract", "net.xml", "-o", "out.xml"],
        ["extract", "net.xml", "-o", EVIL],
        ["extract", "net.xml", "-o", f"{EVIL}/x.xml"],
        ["extract", "net.xml", "--from", EVIL, "-o", "out.xml"],
        ["op", EVIL],
        ["explain", EVIL],
        ["ops", EVIL],
        [EVIL],
        [f"--{EVIL}"],
        ["run", f"--{EVIL}"],
    ],
    ids=lambda options: " ".join(options).encode("unicode_escape").decode(),
)
def test_only_printable_characters(options: list[str], call, tmp_path: Path) -> None:
    _model(tmp_path)
    result = call(*options)
    lines = (result.stdout + result.stderr).split("\n")
    assert all(line.isprintable() for line in lines), [line for line in lines if not line.isprintable()]
    assert not any(line.startswith("::error::forged") for line in lines)
    assert result.exit_code in (0, 1, 2)


def test_the_head_of_a_diff(call, tmp_path: Path) -> None:
    path = _model(tmp_path)
    path.rename(tmp_path / "a\n+++ b.xml")
    result = call("check", "a\n+++ b.xml", "--diff")
    assert result.stdout.startswith("--- a\\n+++ b.xml\n+++ a\\n+++ b.xml\n@@")
