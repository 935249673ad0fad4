"""A model and its paged form have other inputs: the error names the command that compares them."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import irrun
from irrun import build as b
from irrun.cli import cli


@pytest.mark.parametrize(("name", "help"), [("block_indices_begins", "irrun paged"), ("other", "--map")])
def test_what_to_do_about_other_inputs(name: str, help: str, tmp_path: Path) -> None:
    ids = b.parameter([2], name="ids")
    irrun.save_model(b.model({"y": b.Add(ids, b.parameter([2], name="mask"))}), tmp_path / "a.xml")
    more = [b.parameter([2], name=text) for text in (name, "past", "more")]
    sums = b.Add(b.Add(b.Add(b.parameter([2], name="ids"), more[0]), more[1]), more[2])
    irrun.save_model(b.model({"y": sums}), tmp_path / "b.xml")
    arguments = ["compare", str(tmp_path / "a.xml"), str(tmp_path / "b.xml")]
    found = CliRunner().invoke(cli, arguments)
    assert found.exit_code == 2
    assert "IR707" in found.stderr
    assert f"{help} " in found.stderr.partition("= help: ")[2]
