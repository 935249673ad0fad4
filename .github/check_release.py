"""Check that a tag may be released: ``python .github/check_release.py v0.1.0``.

The tag, ``irrun.__version__``, CITATION.cff and the newest entry of CHANGELOG.md must name one version, the entry must
have a date, and no fragment may be left in changelog.d: ``towncrier build --version 0.1.0`` makes the entry of the
fragments.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def faults(tag: str, init: str, citation: str, changelog: str, fragments: Sequence[str]) -> list[str]:
    """Return why ``tag`` may not be released.

    ``init``, ``citation`` and ``changelog`` are the texts of the files, ``fragments`` the names of the files in
    changelog.d.
    """
    version = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    cited = re.findall(r"^version: (.+)$", citation, re.MULTILINE)
    entries = re.findall(r"^## \[(.+?)\](?: - (.+))?$", changelog, re.MULTILINE)
    newest, date = next((entry for entry in entries if entry[0] != "Unreleased"), ("none", ""))
    found = []
    if [tag] != [f"v{number}" for number in version]:
        found.append(f"the tag is {tag}, but irrun.__version__ is {' '.join(version)}")
    if f"v{''.join(cited)}" != tag:
        found.append(f"the tag is {tag}, but the version in CITATION.cff is {' '.join(cited)}")
    if tag != f"v{newest}":
        found.append(f"the tag is {tag}, but the newest entry of CHANGELOG.md is {newest}")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        found.append(f"the newest entry of CHANGELOG.md is dated {date or 'nothing'}; write the date of the release")
    if fragments:
        found.append(f"changelog.d still holds {', '.join(fragments)}; run towncrier build --version {tag[1:]}")
    return found


if __name__ == "__main__":
    messages = faults(
        sys.argv[1],
        (ROOT / "irrun" / "__init__.py").read_text("utf-8"),
        (ROOT / "CITATION.cff").read_text("utf-8"),
        (ROOT / "CHANGELOG.md").read_text("utf-8"),
        sorted(path.name for path in (ROOT / "changelog.d").glob("+*.md")),
    )
    for message in messages:
        print(message, file=sys.stderr)
    sys.exit(1 if messages else 0)
