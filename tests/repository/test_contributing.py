"""The walks ``docs/add-*.md`` lead a newcomer who follows them literally to code that works, with tests that pass.

A walk is a page. In a copy of the tree, its blocks are executed in order:

- ``LANGUAGE title="FILE"`` creates a file.
- ``diff title="FILE"`` changes a file: the lines that begin with a space or ``-`` are found, wherever they are.
- ``sh``: each command succeeds.
- ``console``: each command prints what is shown.

The walk changes the files that its row of CONTRIBUTING's table names, and no other.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from additions import assert_takes, rows
from copies import run
from page_blocks import Block, as_printed, walks
from walks import apply, follow, patched, runs

pytestmark = pytest.mark.processes

WALKS: Final = walks()
NAMES: Final = {
    "Add an operation": {"type": "diff"},
    "Add a kernel": {"type": "cum_sum"},
    "Add a diagnostic": {"code": "IR109", "subject": "graph"},
}
"""What each walk adds, in the words of CONTRIBUTING's table."""
OPENVINO: Final = ["-m", "benchmarks"]
"""How commands begin that need OpenVINO."""
_TESTS: Final = ("tests/", "irrun/explanations/")
"""The folders of files that test the code: the wrong example of an explanation is the test of its diagnostic."""


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_works(walk: str, tree: Path) -> None:
    imported = run(["-c", "import irrun; print(irrun.__file__)"], tree).stdout
    assert Path(imported.strip()).is_relative_to(tree)
    for block in follow(WALKS[walk], tree):
        assert block.language in ("console", "sh")
        if block.language == "console":
            assert as_printed(block.code, tree) == block.code
        for arguments in runs(block):
            if arguments[:2] != OPENVINO:
                done = run(arguments, tree)
                assert done.returncode == 0, done.stdout
    (what,) = (what for what, row in rows().items() if row.how.startswith(f"[{walk}](docs/"))
    assert_takes(tree, what, NAMES[walk])


@pytest.mark.parametrize("walk", WALKS)
def test_the_tests_of_a_walk_fail_without_its_code(walk: str, tree: Path) -> None:
    for block in WALKS[walk]:
        if block.file is not None and block.file.startswith(_TESTS):
            apply(block, tree)
    first, *_ = [arguments for block in WALKS[walk] for arguments in runs(block) if arguments[:2] == ["-m", "pytest"]]
    done = run([*first, "-x"], tree)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout


@pytest.mark.slow
def test_the_kernel_is_measured(tree: Path) -> None:
    """The commands that time irrun and OpenVINO."""
    for block in follow(WALKS["Add a kernel"], tree):
        for arguments in runs(block):
            if arguments[:2] == OPENVINO:
                done = run([*arguments, "--seconds", "0"], tree)
                assert done.returncode == 0, done.stdout


def test_there_are_three_walks() -> None:
    """Other tests execute each of them."""
    assert [*WALKS] == ["Add an operation", "Add a kernel", "Add a diagnostic"]


@pytest.mark.parametrize("block", [b for blocks in WALKS.values() for b in blocks if b.file], ids=lambda b: b.file)
def test_the_text_before_a_block_names_its_file(block: Block) -> None:
    """GitHub does not show the title of a block."""
    prose = re.split(r"^`{3,}.*$", block.page.read_text("utf-8")[: block.span[0]], flags=re.MULTILINE)[-2]
    assert f"`{block.file}`" in prose


@pytest.mark.parametrize("walk", WALKS)
def test_the_code_of_a_walk_is_formatted(walk: str, tree: Path) -> None:
    pytest.importorskip("ruff", reason="the static checks need the extra `dev`")
    assert [*follow(WALKS[walk], tree)]
    files = sorted({block.file for block in WALKS[walk] if block.file and block.file.endswith(".py")})
    for command in (["check"], ["format", "--check"]):
        done = run(["-m", "ruff", *command, "--no-cache", *files], tree)
        assert done.returncode == 0, done.stdout


def test_a_diff_finds_its_lines() -> None:
    assert patched("a\nb\nc\nb\n", " a\n-b\n+B\n@@\n c\n+d\n") == "a\nB\nc\nd\nb\n"
    assert patched("a\n\nb\n", " a\n\n+x\n b\n") == "a\n\nx\nb\n"


@pytest.mark.parametrize(
    ("diff", "complaint"),
    [(" b\n+x\n", "occur 2 times"), (" aa\n+x\n", "occur 0 times"), ("+x\nb\n", "begins with none")],
)
def test_a_diff_that_cannot_be_applied_is_found(diff: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        patched("a\nb\nc aa\nb\n", diff)
