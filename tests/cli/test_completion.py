"""What the shell completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

import completion
from irrun.cli._completion import TABLE
from places import SAMPLES

pytestmark = pytest.mark.processes

MODEL = str(SAMPLES / "convnet.xml")


def completed(*words: str) -> list[str]:
    """Return what the last word of a command line can be, as bash asks for it."""
    line = ["irrun", *words]
    environment = {
        **os.environ, "COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1), "_IRRUN_COMPLETE": "bash_complete",
    }  # fmt: skip
    command = [sys.executable, "-m", "irrun"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


@pytest.mark.parametrize(("words", "expected"), [
    (["check", "--st"], ["plain,--statistics"]),
    (["conformance", "run", "--ev"], ["plain,--every"]),
    (["check", "--format", "sa"], ["plain,sarif"]),
    (["completion", "f"], ["plain,fish"]),
    (["ex"], ["plain,explain", "plain,export", "plain,extract"]),
    (["explain", "IR40"], [f"plain,IR40{n}" for n in range(1, 8)]),
    (["explain", "dims-"], ["plain,dims-mismatch"]),
    (["op", "Broad"], ["plain,Broadcast"]),
    (["op", "lstm"], ["plain,LSTMCell", "plain,LSTMSequence"]),
    (["why", MODEL, "block1/p"], ["plain,block1/pool"]),
    (["run", MODEL, "--tap", "log"], ["plain,logits"]),
    (["run", MODEL, "-i", "im"], ["plain,image="]),
    (["run", MODEL, "-i", "image=x"], ["file,image=x"]),
    (["extract", MODEL, "--to", "prob"], ["plain,probabilities"]),
    (["show", MODEL, "--layer", "fl"], ["plain,flat_shape", "plain,flatten"]),
    (["show", MODEL, "--type", "MaxP"], ["plain,MaxPool"]),
    (["check", "--select", "IR601"], ["plain,IR601"]),
    (["show", "sam"], ["file,sam"]),
    (["why", "nothing.xml", "x"], []),
    (["nothing", "x"], []),
])  # fmt: skip
def test_completion(words: list[str], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, call: Any) -> None:
    if shell == "bash" and sys.platform == "win32":
        pytest.skip("click asks bash for its version, and there is none")
    assert f"_IRRUN_COMPLETE={shell}_complete" in call("completion", shell).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_takes_the_script(call: Any) -> None:
    script = call("completion", "bash").stdout
    done = subprocess.run(["bash", "-c", f"{script}\ncomplete -p irrun"], capture_output=True, text=True, timeout=60)
    assert done.stdout.rstrip() == "complete -o nosort -F _irrun_completion irrun"


def test_the_table_is_up_to_date() -> None:
    assert TABLE.read_text("ascii") == completion.text(), "run: python -m tools completion"


def test_an_option_is_completed_without_its_command() -> None:
    """No more is imported than for ``irrun --help``: neither numpy nor lxml, nor a command."""
    code = "import sys, atexit\nfrom irrun.cli import main\natexit.register(lambda: print(*sys.modules))\nmain()"
    line = {"COMP_WORDS": "irrun check --f", "COMP_CWORD": "2", "_IRRUN_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **line}, capture_output=True, text=True, timeout=60
    )
    completed, modules = done.stdout.splitlines()[:-1], set(done.stdout.splitlines()[-1].split())
    assert completed == ["plain,--format", "plain,--fix"]
    ours = {name for name in modules if name.startswith("irrun")}
    assert ours == {"irrun", "irrun.cli", "irrun.cli._completion", "irrun.cli._groups"}
    assert not modules & {"numpy", "lxml", "rich", "networkx"}
