"""Each fact stands once: what CONTRIBUTING's table names is all that somebody has to write who adds something.

A departure, an engine, a command and an extension are added to a copy of the project. The copy then differs from the
project in the files that the row names, and no other, and what was added works. An operation, a kernel and a
diagnostic are added by the walks, ``tests/repository/test_contributing.py``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import jsonschema
import pytest

from additions import assert_takes, rows
from copies import run, run_commands
from irrun.departures import FOLDER
from page_blocks import blocks
from places import IMPORTED, ROOT

pytestmark = pytest.mark.processes

DEPARTURE: Final = """
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
ROW: Final = """
    Kind(
        "mirror", "mirror:model.xml", "an engine that this test adds",
        reads=(IR,), shows=(OUTPUTS, INNER_VALUES), options=("python",), harness="mirror", packages="irrun",
    ),
"""
HARNESS: Final = """
from irrun.engines.harnesses import irrun


class Harness(irrun.Harness):
    def __init__(self, options):
        super().__init__({"exact": "1"})
        self.name = "mirror 1.0"
"""
COMMAND: Final = '''"""``irrun greet`` (look): Greet a model, for this test."""

import click

from irrun.cli import _terminal
from irrun.cli._options import format_option

__all__ = ["command"]


@click.command("greet")
@click.argument("name")
@format_option("text", "json")
def command(name: str, form: str) -> int:
    """Greet a model, for this test."""
    if form == "json":
        _terminal.print_json({"greeted": name})
    else:
        _terminal.console().print(f"hello, {name}")
    return 0
'''
SCHEMA: Final = {
    "type": "object",
    "properties": {"version": {"const": 1}, "command": {"const": "greet"}, "greeted": {"type": "string"}},
    "required": ["version", "command", "greeted"],
    "additionalProperties": False,
}
COMMAND_TEST: Final = """
def test_greet(call):
    assert call("greet", "convnet").stdout == "hello, convnet\\n"
"""

EXTENSION_TEST: Final = """
import irrun
from irrun import build as b


def test_reversing():
    texts = b.StringTensorUnpack(b.parameter([None], "string", name="texts"))
    model = b.model(b.StringTensorPack(*b.ReverseBytes(*texts)))
    assert irrun.run(model, {"texts": ["abc", "", "irrun"]})[0].tolist() == ["cba", "", "nurri"]
"""


def test_a_departure_is_added_by_its_files(tree: Path) -> None:
    """The page, the site, the tests, the suite and the fuzzer know it."""
    what, names = "a departure of OpenVINO", {"name": "subtract_u8"}
    model = (FOLDER / "add_u8.xml").read_text("utf-8").replace("Add", "Subtract")
    (tree / "irrun/departures/subtract_u8.xml").write_text(model, "utf-8")
    (tree / "irrun/departures/subtract_u8.toml").write_text(DEPARTURE, "utf-8")
    assert_takes(tree, what, names)

    assert _did(tree, "-m", "tools", "departures") == ""
    assert_takes(tree, what, names, made=True)
    row = "(../irrun/departures/subtract_u8.xml) | u8: 1 - 3 | saturates: 0 | wraps: 254 | |"
    assert f"| [Subtract]{row}\n" in (tree / "docs/departures.md").read_text("utf-8")
    tests = "subtract_u8 and not openvino or page_is_made or has_its_file"
    assert "5 passed" in _did(
        tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/departures", "--each-row", "-k", tests
    )
    *page, case, name = _did(tree, "-c", READERS).splitlines()
    assert any("(../../../irrun/departures/subtract_u8.xml) | u8: 1 - 3 |" in line for line in page)
    assert case == "Subtract-1/departure/subtract_u8: {'OpenVINO 2026.4.1': '[0]'}"
    assert name == "subtract_u8"


def test_an_engine_is_added_by_its_files(tree: Path) -> None:
    """Commands list it, compare with it, judge it and fuzz it; a program writes it into the pages."""
    (tree / "irrun/engines/harnesses/mirror.py").write_text(HARNESS)
    table = tree / "irrun/engines/kinds.py"
    before, end, after = table.read_text("utf-8").partition(")\n\nKINDS: Final")
    assert end
    table.write_text(before + ROW.lstrip("\n") + end + after, "utf-8", newline="\n")
    assert_takes(tree, "an engine", {"name": "mirror"})

    compared, judged, fuzzed, help = run_commands(
        tree,
        "compare mirror:convnet.xml convnet.xml",
        f"conformance run mirror --only ReLU-1/* --every 5 -o {tree.parent / 'results'}",
        "fuzz --against mirror --count 2",
        "compare --help",
        folder=tree / "samples",
    )
    assert "(mirror 1.0)" in compared
    assert judged.startswith("mirror 1.0: ")
    assert "0 findings" in fuzzed
    assert "mirror:model.xml         an engine that this test adds" in help
    assert _did(tree, "-m", "tools", "engine_tables") == ""
    assert_takes(tree, "an engine", {"name": "mirror"}, made=True)


def test_a_command_is_added_by_its_files(tree: Path) -> None:
    """``--help`` lists it in its group, and it does what it says."""
    schema = tree / "irrun/cli/schemas/greet.json"
    (tree / "irrun/cli/greet.py").write_text(COMMAND)
    schema.write_text(json.dumps(SCHEMA))
    (tree / "tests/cli/test_greet.py").write_text(COMMAND_TEST)
    assert_takes(tree, "a command", {"name": "greet"})

    help, own, text, form = run_commands(
        tree, "--help", "greet --help", "greet convnet", "greet convnet --format json", folder=tree.parent
    )
    title, _, rest = help.partition("Look at models and operations:\n")[2].partition("\n")
    assert title == "  greet        Greet a model, for this test."
    assert rest.lstrip().startswith("op ")
    assert own.startswith("Usage: irrun greet ")
    assert text == "hello, convnet\n"
    jsonschema.validate(json.loads(form), json.loads(schema.read_text()))
    tests = ("tests/cli/test_greet.py", "tests/cli/test_groups.py")
    assert "4 passed" in _did(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)


def test_an_extension_is_added_by_its_files(tree: Path) -> None:
    """Its operation is found by its type, built and run; the site has its page."""
    (package,) = (block.code for block in blocks(ROOT / "docs/extensions.md") if block.file == "reversing/reversing.py")
    code = re.sub(r"\birrun\.", "", package).replace("import irrun\n", "from irrun.opdef import Op, op, ports\n")
    (tree / "irrun/extensions/reversing").mkdir()
    (tree / "irrun/extensions/reversing/__init__.py").write_text(code)
    (tree / "tests/extensions/test_reversing.py").write_text(EXTENSION_TEST)
    assert_takes(tree, "an extension: operations that are not OpenVINO's", {"name": "reversing"})

    assert "The begins and ends have one shape" in run_commands(tree, "op ReverseBytes", folder=tree)[0]
    tests = ("tests/extensions/test_reversing.py", "tests/repository/test_site.py", "tests/repository/test_layout.py")
    chosen = "reversing or every_operation_version or test_layout"
    assert " passed" in _did(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen)


def test_every_row_names_files_or_a_program() -> None:
    assert rows()
    assert all(row.by_hand | row.made for row in rows().values())


def test_a_file_that_the_row_does_not_name_is_found(tree: Path) -> None:
    fragment, page = tree / "changelog.d/+topic.added.md", tree / "README.md"
    fragment.parent.mkdir()
    fragment.write_text("It is faster.\n")
    what, names = "anything that a user notices", {"topic": "topic", "kind": "added"}
    assert_takes(tree, what, names)
    page.write_text(page.read_text("utf-8") + "It is faster.\n", "utf-8")
    with pytest.raises(AssertionError, match=r"not in the row: \['README\.md'\]"):
        assert_takes(tree, what, names)


def _did(tree: Path, *arguments: str) -> str:
    """Return what Python prints in a copy of the tree."""
    done = run(arguments, tree)
    assert done.returncode == 0, done.stdout
    return done.stdout
