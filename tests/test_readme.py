"""The README tells the truth: its commands print what it shows. `python tests/test_readme.py` writes it anew."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
_CONSOLE = re.compile(r"```console\n\$ (irrun [^\n]*)\n(.*?)```", re.DOTALL)


def _output(command: str) -> str:
    environment = os.environ | {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    lines = done.stdout.decode().replace("\r\n", "\n").splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


@pytest.mark.parametrize("block", _CONSOLE.findall(README.read_text("utf-8")), ids=lambda b: b[0])
def test_commands_print_what_is_shown(block: tuple[str, str]) -> None:
    command, shown = block
    assert _output(command) == shown


def test_python_example_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert printed.startswith("IR401 39 broadcast Broadcast")
    assert "(1, 10)" in printed


def test_ci_runs_the_test_command() -> None:
    commands = re.findall(r"```sh\n(.*?)\n```", README.read_text("utf-8"))
    assert len(commands) == 2
    assert commands[1] in (ROOT / ".ci" / "run").read_text().splitlines()


if __name__ == "__main__":
    text = README.read_text("utf-8")
    README.write_text(_CONSOLE.sub(lambda m: f"```console\n$ {m[1]}\n{_output(m[1])}```", text), "utf-8")
