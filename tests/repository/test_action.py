"""action.yml names what its script reads, and the script does in a repository of a user what docs/checking.md says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from irrun import build as b
from irrun import save_model
from places import ROOT
from shell_commands import project

pytestmark = pytest.mark.processes

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
SCRIPT = ROOT / ".github" / "action.py"
STEPS = ACTION["runs"]["steps"]
BASH = shutil.which("bash") if sys.platform != "win32" else None
_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | {
    f"GIT_{role}_{what}": f"someone{'@example.org' if what == 'EMAIL' else ''}"
    for role in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "init.defaultBranch=main", *arguments]
    done = subprocess.run(command, cwd=folder, env=os.environ | _GIT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _commit(folder: Path) -> str:
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", "a commit")
    return _git(folder, "rev-parse", "HEAD")


def _model(path: Path, *, axis: int = 0, shift: float = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    x = b.Add(b.parameter([2, 3], name="x"), b.constant([[1.0 + shift, 2, 3]], name="c"), name="sum")
    save_model(b.model({"y": b.Softmax(x, axis=axis, name="softmax")}), path)


def _wrong(path: Path) -> None:
    """Save a model that declares three columns less than its Softmax gives."""
    _model(path)
    head, tail = path.read_text().split('name="softmax"')
    path.write_text(f'{head}name="softmax"{tail.replace("<dim>3</dim>", "<dim>6</dim>")}')


@dataclass(frozen=True)
class User:
    """The repository of a user: a clone with one commit, as actions/checkout makes it, and the commit before."""

    folder: Path
    base: str
    files: Path

    def run(self, event: dict[str, Any] | None = None, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the script for an event, by default a pull request against the base."""
        request = {"pull_request": {"number": 7, "base": {"sha": self.base}}}
        (self.files / "event.json").write_text(json.dumps(request if event is None else event))
        files = {f"GITHUB_{name}": str(self.files / name) for name in ("STEP_SUMMARY", "OUTPUT")}
        environment = os.environ | _GIT | files | inputs | {"GITHUB_EVENT_PATH": str(self.files / "event.json")}
        environment |= {"RUNNER_TEMP": str(self.files), "GITHUB_REPOSITORY": "me/models", "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            [sys.executable, str(SCRIPT)],
            cwd=self.folder, env=environment, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip

    def comment(self) -> str:
        return (self.files / "irrun-diff.md").read_text("utf-8")


@pytest.fixture
def user(tmp_path: Path) -> Callable[[Callable[[Path], None], Callable[[Path], None]], User]:
    """Returns a repository whose base and head are made by two functions of its folder."""

    def make(before: Callable[[Path], None], after: Callable[[Path], None]) -> User:
        if shutil.which("git") is None:
            pytest.skip("git is not installed")
        origin, files = tmp_path / "origin", tmp_path / "files"
        origin.mkdir()
        files.mkdir()
        _git(origin, "init", "--quiet")
        before(origin)
        base = _commit(origin)
        after(origin)
        _commit(origin)
        _git(origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        _git(tmp_path, "clone", "--quiet", "--depth=1", origin.as_uri(), "clone")
        return User(tmp_path / "clone", base, files)

    return make


def _untouched(folder: Path) -> None:
    _wrong(folder / "old.xml")


def test_the_script_reads_the_inputs_of_the_action() -> None:
    assert ACTION["runs"]["using"] == "composite"
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(STEPS)))
    assert used == ACTION["inputs"].keys()
    read = set(re.findall(r'os\.environ(?:\.get\(|\[)"([A-Z_]+)"', SCRIPT.read_text("utf-8")))
    passed = STEPS[-1]["env"].keys() - {"GH_TOKEN"}  # which gh reads
    assert {name for name in read if not name.startswith(("GITHUB_", "RUNNER_"))} == passed
    outputs = {output["value"] for output in ACTION["outputs"].values()}
    assert outputs == {f"${{{{ steps.{STEPS[-1]['id']}.outputs.{name} }}}}" for name in ACTION["outputs"]}
    for step in STEPS:
        assert ("uses" in step) != ("run" in step)
        assert "${{" not in step.get("run", ""), "an input in a script is a command of whoever sets it"


@pytest.mark.skipif(BASH is None, reason="the steps are scripts of bash")
@pytest.mark.parametrize("extras", ["", "fast,tokenizers"])
def test_the_steps_install_and_start_the_checkout_of_the_action(extras: str, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    python.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_ACTION_PATH": str(ROOT), "EXTRAS": extras}
    called = [
        subprocess.run(
            [BASH or "", "-euo", "pipefail", "-c", step["run"]],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for step in STEPS
        if "run" in step
    ]
    wanted = f"{ROOT}[{extras}]" if extras else str(ROOT)
    assert called == [["-m", "pip", "install", "--quiet", wanted], [str(SCRIPT)]]
    assert set(filter(None, extras.split(","))) <= project()["optional-dependencies"].keys()


def test_check_reports_the_models_that_a_pull_request_changes(user: Any) -> None:
    def after(folder: Path) -> None:
        _wrong(folder / "models" / "new.xml")
        (folder / "pom.xml").write_text("<project/>\n")

    clone = user(_untouched, after)
    done = clone.run(COMMAND="check")
    assert done.returncode == 1, done.stderr
    found = re.findall(r"^::error file=([^,]+),", done.stdout, re.MULTILINE)
    assert set(found) == {"models/new.xml"}
    assert clone.run(COMMAND="check", FAIL_ON="never").returncode == 0
    both = clone.run(COMMAND="check", PATHS="models\n\n  old.xml\n").stdout
    assert set(re.findall(r"^::error file=([^,]+),", both, re.MULTILINE)) == {"models/new.xml", "old.xml"}
    branch = clone.run({"before": "0" * 40}, COMMAND="check").stdout
    assert set(re.findall(r"^::error file=([^,]+),", branch, re.MULTILINE)) == {"models/new.xml", "old.xml"}


def test_check_fails_at_a_warning_if_asked_to(user: Any) -> None:
    def after(folder: Path) -> None:
        _model(folder / "new.xml")
        text = (folder / "new.xml").read_text()
        (folder / "new.xml").write_text(text.replace('axis="0"', 'axis="0" axes="0"'))

    clone = user(_untouched, after)
    done = clone.run(COMMAND="check")
    assert re.findall(r"^::(\w+) ", done.stdout, re.MULTILINE) == ["warning"]
    assert (done.returncode, clone.run(COMMAND="check", FAIL_ON="warning").returncode) == (0, 1)


def _before(folder: Path) -> None:
    for name in ("same", "attribute", "weights", "moved"):
        _model(folder / "models" / f"{name}.xml")
    save_model(b.model({"y": b.Sigmoid(b.parameter([1], name="z"))}), folder / "models" / "gone.xml")
    (folder / "pom.xml").write_text("<project/>\n")


def _after(folder: Path) -> None:
    _model(folder / "models" / "attribute.xml", axis=1)
    _model(folder / "models" / "weights.xml", shift=1)
    new = "new`<b>.xml" if sys.platform != "win32" else "new`b.xml"
    save_model(b.model({"y": b.Exp(b.parameter([-1, 5], name="w"))}), folder / new)
    (folder / "models" / "gone.xml").unlink()
    for ending in ("xml", "bin"):
        (folder / "models" / f"moved.{ending}").rename(folder / f"elsewhere.{ending}")
    (folder / "pom.xml").unlink()


def test_diff_compares_with_the_base(user: Any) -> None:
    clone = user(_before, _after)
    done = clone.run(COMMAND="diff")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    comment = clone.comment()
    assert comment.startswith("<!-- irrun diff -->\n## irrun diff: 5 models changed\n\n")
    verdicts = re.findall(r"^\*\*(.*)\*\*$", comment, re.MULTILINE)
    new = "new&#96;&#60;b&#62;&#46;xml" if sys.platform != "win32" else "new&#96;b&#46;xml"
    assert verdicts == [
        "`head/elsewhere.xml` is the same model as `base/models/moved.xml`.",
        "`head/models/attribute.xml` differs from `base/models/attribute.xml`.",
        "<code>models&#47;gone&#46;xml</code> is removed.",
        "`head/models/weights.xml` differs from `base/models/weights.xml`.",
        f"<code>{new}</code> is new.",
    ]
    assert "| `axis`: `0` → `1` |" in comment
    assert "| `weights`: 1 of 3 elements (33.3 %) differ, max abs 1 at [0,0], max rel 1," in comment
    summary, output = ((clone.files / name).read_text("utf-8") for name in ("STEP_SUMMARY", "OUTPUT"))
    assert summary == comment.removeprefix("<!-- irrun diff -->\n")
    assert output == f"comment-file={clone.files / 'irrun-diff.md'}\ndiffers=true\n"
    assert clone.run(COMMAND="diff", FAIL_ON="difference", PATHS="models/attr*.xml").returncode == 1
    assert re.findall(r"^\*\*`(\S+)`", clone.comment(), re.MULTILINE) == ["head/models/attribute.xml"]
    assert clone.run(COMMAND="diff", FAIL_ON="difference", BASE="main").returncode == 0
    assert "no model has changed" in clone.comment()


def test_a_model_that_cannot_be_compared(user: Any) -> None:
    def after(folder: Path) -> None:
        (folder / "old.xml").write_text('<net name="n" version="11"><layers>')

    clone = user(_untouched, after)
    assert clone.run(COMMAND="diff").returncode == 1
    assert "**<code>old&#46;xml</code> cannot be compared.**\n\n    error[IR" in clone.comment()
    assert clone.run(COMMAND="diff", FAIL_ON="never").returncode == 0


def test_a_comment_is_cut_to_what_github_accepts(user: Any) -> None:
    """Five hundred new models with long names: the comment says how many are left out, and the summary holds all."""
    names = [f"{'m' * 100}{number:03}" for number in range(700)]

    def after(folder: Path) -> None:
        for name in names:
            (folder / f"{name}.xml").write_text('<net name="n" version="11"><layers/><edges/></net>')

    clone = user(_untouched, after)
    clone.run(COMMAND="diff")
    comment = clone.comment()
    (left,) = re.findall(r"^(\d+) more models do not fit; see the summary of the job\.$", comment, re.MULTILINE)
    assert len(comment) < 65_536
    assert comment.count(" is new.") + int(left) == len(names)
    assert (clone.files / "STEP_SUMMARY").read_text("utf-8").count(" is new.") == len(names)


GH = f"""#!{sys.executable}
import os, pathlib, sys
pathlib.Path(os.environ["GH_CALLS"]).open("a").write(" ".join(sys.argv[1:]) + "\\n")
if "--paginate" in sys.argv:
    print(os.environ["GH_FOUND"])
elif os.environ.get("GH_REFUSES"):
    sys.exit("HTTP 403: Resource not accessible by integration")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the program gh is a script with #!")
@pytest.mark.parametrize(
    ("found", "end"),
    [
        ("", "--method POST repos/me/models/issues/7/comments --field body=@"),
        ("5\n", "--method PATCH repos/me/models/issues/comments/5 --field body=@"),
    ],
)
def test_the_comment_of_the_last_run_is_replaced(user: Any, tmp_path: Path, found: str, end: str) -> None:
    clone = user(_before, lambda folder: _model(folder / "models" / "same.xml", axis=1))
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    calls = tmp_path / "calls"
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GH_CALLS": str(calls), "GH_FOUND": found}
    assert clone.run(COMMAND="diff", COMMENT="true", **environment).stdout == ""
    first, last = calls.read_text().splitlines()
    assert first.startswith("api --paginate repos/me/models/issues/7/comments --jq ")
    assert last == f"api {end}{clone.files / 'irrun-diff.md'}"
    refused = clone.run(COMMAND="diff", COMMENT="true", GH_REFUSES="1", **environment)
    assert refused.returncode == 0
    assert refused.stdout == (
        "::warning::irrun: no comment: HTTP 403: Resource not accessible by integration. "
        "The job needs permissions: pull-requests: write\n"
    )


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"COMMAND": "run"}, "command is run; choose check or diff"),
        ({"COMMAND": "diff", "FAIL_ON": "warning"}, "fail-on is warning; for diff, choose error, difference, never"),
        ({"COMMAND": "check", "BASE": "nowhere"}, "there is no revision nowhere: fatal: "),
        ({"COMMAND": "diff"}, "there is no revision to compare with; pass base"),
    ],
)
def test_wrong_inputs(user: Any, inputs: dict[str, str], said: str) -> None:
    done = user(_untouched, lambda folder: _model(folder / "new.xml")).run({}, **inputs)
    assert done.returncode == 2
    assert done.stdout.startswith(f"::error::irrun: {said}")
    assert "Traceback" not in done.stderr
