"""The pages tell the truth: a test executes every code block of every page.

A block is of one of these kinds; a block of any other language fails.

- ``console``: each command after ``$`` is run, and prints what is shown.
- ``python``: the blocks of a page are executed in one namespace, in order, in a folder that holds a copy of samples.
  A function ``test_…`` that a block defines is called, as pytest would call it.
- ``text`` directly after ``python``: what the block prints, and the exception that it raises.
- ``sh``: commands that change the reader's machine are not run; that programs, options, files and extras exist is
  checked.
- ``yaml``, ``toml``, ``xml``: parsed; commands in ``run`` and ``script``, and pre-commit hooks, are checked.
- Those of a walk, which create and change files in a copy of the tree (``tests/repository/test_contributing.py``).
- ``console`` of "Your first ten minutes", whose commands build on one another (``tests/repository/test_ten_minutes.py``).
- ``{toctree}`` on the front page of the site, which only Sphinx can build; ``tests/repository/test_site.py`` does.

The pages of ``irrun explain`` are executed by ``tests/checking/test_explanations.py``. ``python -m tools pages`` rewrites
what ``console`` and ``text`` blocks show.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import click
import hypothesis
import pytest
import yaml

import irrun
import page_blocks
import warm
from copies import copy_tree
from page_blocks import TEN_MINUTES, Block, as_printed, first_ten_minutes, session, walks
from places import IMPORTED, ROOT
from shell_commands import check_command, commands
from walks import follow

pytestmark = pytest.mark.processes

SAMPLE_PROJECT: Final = ROOT / "samples" / "pytest_project"
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / ".github").rglob("*.md")])


WALKS: Final = walks()


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, but for those of a walk."""
    return [block for block in page_blocks.blocks(page) if not any(block in walk for walk in WALKS.values())]


def is_typed(block: Block) -> bool:
    """Whether a block builds on the commands before it."""
    return block.page == TEN_MINUTES and block.language == "console"


BLOCKS: Final = [block for page in PAGES for block in blocks(page)]
PYTHON: Final = [page for page in PAGES if any(block.language == "python" for block in blocks(page))]


# -- python


def _is_output(before: Block | None, block: Block, text: str) -> bool:
    """Whether a block shows the output of the one before: nothing but blank lines stands between them."""
    follows = before is not None and not text[before.span[1] : block.span[0]].split("```")[1].strip()
    return block.language == "text" and follows and before is not None and before.language == "python"


def execute(page: Path) -> Iterator[tuple[Block, Block | None, str]]:
    """Execute the python blocks of a page, and yield each, the block that shows its output, and its output.

    An exception is part of the output if a block shows it, and an error otherwise. The current folder is used.
    """
    hypothesis.settings.register_profile("pages", max_examples=10, deadline=None, database=None)
    hypothesis.settings.load_profile("pages")
    text, own = page.read_text("utf-8"), blocks(page)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block, after in zip(own, [*own[1:], None]):
        if block.language != "python":
            continue
        shown = after if after is not None and _is_output(block, after, text) else None
        code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
        before = set(namespace)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            try:
                exec(code, namespace)
                for name in namespace.keys() - before:
                    if name.startswith("test_"):
                        namespace[name]()
            except Exception as error:
                if shown is None:
                    raise
                print("".join(traceback.format_exception_only(error)), end="")
        yield block, shown, printed.getvalue()


def _execute_apart(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Execute a page in a process of its own, since a page may register operations or replace modules."""
    shutil.copytree(ROOT / "samples", folder / "samples", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    return warm.run(
        [sys.executable, __file__, str(page)],
        cwd=folder, env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": os.pathsep.join(map(str, IMPORTED))},
        capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip


def _blurred(text: str) -> str:
    """Leave out the digits that differ from processor to processor."""
    return re.sub(r"(\d\.\d{3})\d+", r"\1", text)


@pytest.mark.parametrize("page", PYTHON, ids=lambda page: page.stem)
def test_python_blocks_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    if page.stem == "onnx-export":
        pytest.importorskip("onnxruntime", reason="the page needs the extra `onnx`")
    done = _execute_apart(page, tmp_path)
    assert done.returncode == 0, done.stderr


# -- every block


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language != "python" and not is_typed(b)], ids=str)
def test_block(block: Block) -> None:
    match block.language:
        case "console":
            assert as_printed(block.code) == block.code
        case "sh":
            for command in commands(block.code):
                check_command(command)
        case "text":
            own = blocks(block.page)
            before = own[own.index(block) - 1]
            assert _is_output(before, block, block.page.read_text("utf-8")), "text shows the output of a python block"
        case "yaml":
            _check_yaml(yaml.safe_load(block.code))
        case "toml":
            tomllib.loads(block.code)
        case "xml":
            ET.fromstring(f"<page>{block.code}</page>")
        case "{toctree}":
            assert block.page.name == "index.md"
        case language:
            pytest.fail(f"no test knows the language {language!r}: see the docstring of {__file__}")


def _check_yaml(tree: Any) -> None:
    """Check the commands and pre-commit hooks in what a workflow or .pre-commit-config.yaml holds."""
    known = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "run":
                scripts = [value]
            elif key == "script":
                scripts = value
            else:
                scripts = []
            for script in scripts:
                for command in commands(script):
                    check_command(command)
            if key == "uses" and "/irrun@" in value:
                assert value == f"OWNER/irrun@v{irrun.__version__}"
                assert (
                    tree.get("with", {}).keys()
                    <= yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"].keys()
                )
            if key == "hooks":
                assert {hook["id"] for hook in value} <= known
            _check_yaml(value)
    elif isinstance(tree, list):
        for item in tree:
            _check_yaml(item)


def test_only_walks_and_the_extension_name_files() -> None:
    """``test_contributing.py`` and ``test_extension_package.py`` write those files and use them."""
    named = [block for block in BLOCKS if block.file is not None]
    assert {block.page.stem for block in named} == {"extensions"}, list(map(str, named))


def test_every_page_is_executed() -> None:
    """No page lies outside of what this file, test_explanations.py and the sample project's test below execute."""
    elsewhere = [*(ROOT / "irrun" / "explanations").glob("*.md"), SAMPLE_PROJECT / "README.md"]
    elsewhere += (ROOT / "irrun" / "report" / "page" / "vendor").glob("*.md")
    folders = (".github", "benchmarks", "docs", "irrun", "samples", "tests")
    found = {*ROOT.glob("*.md"), *(page for folder in folders for page in (ROOT / folder).rglob("*.md"))}
    generated = {page for page in found if page.is_relative_to(ROOT / "docs" / "generated")}
    assert found - generated == {*PAGES, *elsewhere}


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub and MyST make them."""
    text = re.sub(r"^ *(`{3,}).*?^ *\1 *$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    """Generated pages of the site exist only after a build; ``test_site.py`` knows their names."""
    prose = re.sub(r"^ *(`{3,}).*?^ *\1 *$|`[^`\n]+`", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, anchor in re.findall(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)", prose):
        file = (page.parent / target).resolve() if target else page
        if not target.startswith("generated/"):
            assert file.exists(), f"{page.name} links {target}"
            assert not anchor or file.suffix != ".md" or anchor in _anchors(file), (
                f"{page.name} links {target}#{anchor}"
            )


def test_no_page_holds_two_sides_of_a_merge() -> None:
    marks = re.compile(r"^(?:<{7} |>{7} |={7}$)", re.MULTILINE)
    assert marks.search("a\n<<<<<<< HEAD\nb\n")
    assert [page.name for page in PAGES if marks.search(page.read_text("utf-8"))] == []


def test_ci_runs_the_test_command() -> None:
    shown = [block.code.strip() for block in blocks(ROOT / "README.md") if block.language == "sh"]
    assert len(shown) == 2
    assert shown[1] in (ROOT / ".ci" / "run").read_text().splitlines()


@pytest.mark.parametrize(
    "command",
    [
        "irrun chekc models",
        "irrun check models --fixx",
        "irrun check models --format",
        "python tests/no_such_file.py",
        "python -m irrun.no_such_module",
        "python -m pytest -m sppec",
        "python -m pytest --no-such-option",
        "pytest tests/no_such_file.py",
        "pip install -q -e '.[no_such_extra]'",
        ".venv/bin/no-such-program",
    ],
)
def test_a_command_that_cannot_work_is_found(command: str) -> None:
    (words,) = commands(command)
    with pytest.raises((AssertionError, click.UsageError)):
        check_command(words)


def test_commands_of_a_script() -> None:
    script = "cd a && irrun check x > 'y z'  # said\n\nirrun run \\\n  m.xml | tail -1"
    expected = [["cd", "a"], ["irrun", "check", "x"], ["irrun", "run", "m.xml"], ["tail", "-1"]]
    assert list(commands(script)) == expected


# -- the sample project


@pytest.mark.slow
def test_the_sample_project_says_what_its_page_shows(tmp_path: Path) -> None:
    """Run the commands of its README in order, in a copy; a block shows an excerpt of what pytest prints."""
    project = tmp_path / "project"
    shutil.copytree(SAMPLE_PROJECT, project, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for block in blocks(SAMPLE_PROJECT / "README.md"):
        if block.language == "toml":
            settings = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
            assert tomllib.loads(block.code)["tool"] == settings["tool"]
            continue
        assert block.language == "console"
        for command, shown in session(block.code):
            said = iter(_comparable(_run_in(project, command)))
            for line in _comparable(shown):
                assert line in said, f"{command} does not print {line!r}"  # `in` goes on from the line before


def _comparable(text: str) -> list[str]:
    """Return the lines without times and last digits."""
    return [re.sub(r" in \d+\.\d+s", "", line) for line in _blurred(text).splitlines()]


def _run_in(folder: Path, command: str) -> str:
    words = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "COLUMNS") and not k.startswith("PYTEST_")}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    program, *arguments = words
    if program == "rm":
        for argument in arguments:
            (folder / argument).unlink()
        return ""
    call = {"python": [], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"]}[program]
    done = subprocess.run(
        [sys.executable, *call, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert program == "pytest" or done.returncode == 0, done.stderr
    return done.stdout


# -- as a program


def _check_page(page: Path) -> None:
    """Execute the python blocks of a page in this process; exit with a message where the page is not true."""
    for block, shown, printed in execute(page):
        expected = shown.code if shown is not None else ""
        if _blurred(printed) != _blurred(expected):
            sys.exit(f"{block}: printed\n{printed}\nbut the page shows\n{expected}")


def _rewrite(page: Path) -> None:
    """Write what commands and python blocks print into a page."""
    text = page.read_text("utf-8")
    alone = [block for block in blocks(page) if block.language == "console" and not is_typed(block)]
    new = {block.span: as_printed(block.code) for block in alone}
    if page == TEN_MINUTES:
        with tempfile.TemporaryDirectory() as folder:
            new |= {block.span: printed for block, printed in first_ten_minutes(Path(folder))}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        shutil.copytree(ROOT / "samples", "samples")
        new |= {
            shown.span: printed
            for _, shown, printed in execute(page)
            if shown is not None and _blurred(printed) != _blurred(shown.code)
        }
        for name, walk in WALKS.items():
            consoles = (b for b in follow(walk, copy_tree(Path(name))) if b.language == "console" and b.page == page)
            new |= {block.span: as_printed(block.code, Path(name).resolve()) for block in consoles}
    for (start, end), code in sorted(new.items(), reverse=True):
        text = text[:start] + code + text[end:]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    if sys.argv[1:]:
        _check_page(Path(sys.argv[1]))
    else:
        for each in PAGES:
            _rewrite(each)
