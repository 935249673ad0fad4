"""Print the commands of "Your first ten minutes" as a shell script, which a newcomer's empty container can execute.

``python -m tools ten_minutes CLONE | sh`` types what docs/first-ten-minutes.md says, with CLONE (a path or an address
for ``git clone``) instead of the page's address. The script stops at the first command that fails, prints each command,
and ends with the seconds that all took. ``--without openvino`` leaves out the section of a package that has no wheel.
"""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parent.parent / "docs" / "first-ten-minutes.md"
ADDRESS: Final = "https://ADDRESS/irrun"
FINDINGS: Final = 1
"""The exit status of a command that has found something, as the page expects of some."""


def commands(page: str) -> list[str]:
    """Return what the page lets its reader type, in order: the lines of ``sh`` blocks, and those of ``console`` after $."""
    found: list[str] = []
    for language, code in re.findall(r"^```(sh|console)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        lines = code.splitlines()
        found += lines if language == "sh" else [line[2:] for line in lines if line.startswith("$ ")]
    return found


def script(page: str, clone: str, without: str | None = None) -> str:
    """Return the script: the commands of ``page``, but for sections (``## …``) whose commands install ``without``."""
    sections = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    if without is not None:
        sections = [section for section in sections if not re.search(rf"pip install .*\b{without}\b", section)]
    lines = ["set -e", "start=$(date +%s)"]
    for command in commands("".join(sections)):
        typed = command.replace(ADDRESS, shlex.quote(clone))
        lines.append(f"echo {shlex.quote(f'$ {typed}')}")
        lines.append(f"{typed} || [ $? = {FINDINGS} ]" if typed.startswith("irrun ") else typed)
    return "\n".join([*lines, 'echo "$(($(date +%s) - start)) seconds"', ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", help="what `git clone` gets")
    parser.add_argument("--without", metavar="PACKAGE", help="leave out the section that installs PACKAGE")
    options = parser.parse_args()
    print(script(PAGE.read_text("utf-8"), options.clone, options.without), end="")


if __name__ == "__main__":
    main()
