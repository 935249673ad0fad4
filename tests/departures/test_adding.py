"""A departure is added by its two files: the page, the site, the tests, the suite and the fuzzer follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from irrun.departures import FOLDER
from places import IMPORTED
from walks import copy_tree, run

FILE: Final = """
operation = "Subtract"
page = "arithmetic/subtract-1"
case = "u8: 1 - 3"
openvino = "saturates: 0"
irrun = "wraps: 254"
no_issue = "2026-11-24: it stands in a test only"
before = ["add_u8"]
recognised = ['^values Subtract-1 \\([pc]:u8.* has 0 at ']

[[call]]
feeds = [[1], [3]]
irrun = [254]
openvino = [0]
"""

READERS: Final = f"""
import sys
sys.path[:0] = ["docs/_ext", *{[path.relative_to(IMPORTED[0]).as_posix() for path in IMPORTED]}]
import site_pages
from conformance import departures
from irrun.fuzz import explained

print(site_pages.operation_pages()["operations/Subtract.md"])
print(*(f"{{case.name}}: {{case.observed}}" for case in departures.cases() if "subtract_u8" in case.name))
print(explained("values Subtract-1 (p:u8[1], p:u8[1]) {{}} -> 1 static | call 1: output 0 has 0 at [0], not 254 (1 of 1)"))
"""


def test_a_departure_is_added_by_its_files(tmp_path: Path) -> None:
    tree = copy_tree(tmp_path / "tree")
    model = (FOLDER / "add_u8.xml").read_text("utf-8").replace("Add", "Subtract")
    (tree / "irrun/departures/subtract_u8.xml").write_text(model, "utf-8")
    (tree / "irrun/departures/subtract_u8.toml").write_text(FILE, "utf-8")

    assert _did(tree, "-m", "tools", "departures") == ""
    row = "(../irrun/departures/subtract_u8.xml) | u8: 1 - 3 | saturates: 0 | wraps: 254 | |"
    assert f"| [Subtract]{row}\n" in (tree / "docs/departures.md").read_text("utf-8")
    tests = "subtract_u8 and not openvino or page_is_made or has_its_file"
    assert "4 passed" in _did(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/departures", "-k", tests)
    *page, case, name = _did(tree, "-c", READERS).splitlines()
    assert any("(../../../irrun/departures/subtract_u8.xml) | u8: 1 - 3 |" in line for line in page)
    assert case == "Subtract-1/departure/subtract_u8: {'OpenVINO 2026.4.1': '[0]'}"
    assert name == "subtract_u8"


def _did(tree: Path, *arguments: str) -> str:
    """Return what Python prints in a copy of the tree."""
    done = run(arguments, tree)
    assert done.returncode == 0, done.stdout
    return done.stdout
