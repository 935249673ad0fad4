"""What the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
    (["ex"], ["plain,explain", "plain,extract"]),
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


def test_the_script_of_a_shell() -> None:
    for shell in ("bash", "zsh", "fish"):
        if shell == "bash" and sys.platform == "win32":
            continue
        result = subprocess.run(
            [sys.executable, "-m", "irrun"], env={**os.environ, "_IRRUN_COMPLETE": f"{shell}_source"},
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert "_IRRUN_COMPLETE" in result.stdout
