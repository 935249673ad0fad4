"""Draw the picture of a finding for the README: ``python docs/terminal.py``."""

from __future__ import annotations

import inspect
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

DOCS: Final = Path(__file__).parent
PICTURE: Final = DOCS / "_static" / "finding.svg"
COMMAND: Final = ("check", "samples/wrong_dim.xml")
WIDTH: Final = 92
"""The width of the picture in columns."""

_FONTS: Final = re.compile(r"\s*@font-face \{\{.*?\n    \}\}", re.DOTALL)
"""The rules of rich's template that fetch a font. A picture of the README fetches nothing."""


def finding() -> str:
    """Return what the command prints on a terminal with colours, below the command itself."""
    environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(WIDTH)}
    environment.pop("NO_COLOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "irrun", *COMMAND], cwd=DOCS.parent, env=environment, capture_output=True, text=True,
        encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return f"\x1b[1m$ irrun {' '.join(COMMAND)}\x1b[0m\n{done.stdout}"


def drawn(output: str) -> str:
    """Return the output of a terminal as an SVG picture."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor", highlight=False
    )
    console.print(Text.from_ansi(output.rstrip()))
    template = inspect.signature(console.export_svg).parameters["code_format"].default
    return console.export_svg(title="irrun", theme=MONOKAI, code_format=_FONTS.sub("", template), unique_id="finding")


if __name__ == "__main__":
    PICTURE.write_text(drawn(finding()), "utf-8")
