"""Hold the quotations of irrun/specification and irrun/departures against the pages: `python -m tools quotations FOLDER`.

FOLDER holds the pages of the specification as OpenVINO's repository has them, such as `arithmetic/divide-1.rst`; pages
that it lacks are skipped. A quotation must stand in its page word for word; white space counts as a blank, and `…` for
any words. The exit status is 1 if one does not, or if no page was found.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from irrun.departures import departures
from irrun.opdef import all_ops, is_custom
from irrun.specification import wording


def quotations() -> Iterator[tuple[str, str, str]]:
    """Yield the file, the page and the sentence of each quotation."""
    for cls in all_ops():
        name = f"{cls.type}-{cls.since}"
        if not is_custom(cls) and (found := wording(name)):
            yield from ((f"{name}.toml", cls.spec, sentence) for sentence in found.sentences())
    yield from ((f"{d.name}.toml", d.page, d.sentence) for d in departures() if d.sentence)


def stands_in(sentence: str, page: str) -> bool:
    """Return whether a page has the parts of a sentence between ``…`` in their order."""
    place, text = 0, _plain(page)
    for part in map(_plain, sentence.split("…")):
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    held = wrong = 0
    for file, page, sentence in quotations():
        path = folder / f"{page}.rst"
        if not path.exists():
            continue
        held += 1
        if not stands_in(sentence, path.read_text("utf-8")):
            wrong += 1
            print(f"{file}: {page} does not say: {sentence}")
    print(f"{held} quotations held against their pages, {wrong} wrong")
    sys.exit(1 if wrong or not held else 0)


if __name__ == "__main__":
    main()
