"""Write the archive of a release of the conformance suite: `python -m tools suite_release -o FOLDER`.

The archive holds the suite, its licence, the changes of verdicts, the pages that explain the file and the protocol, and
the checksums of all of them. The same contents give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import tarfile
from pathlib import Path
from typing import Final

from irrun.conformance.suite import SUITE, read_suite
from places import ROOT

FILES: Final = {
    "suite.jsonl.xz": SUITE,
    "LICENSE": ROOT / "LICENSE",
    "CHANGES.md": ROOT / "docs" / "conformance-changes.md",
    "README.md": ROOT / "docs" / "conformance.md",
    "HARNESS.md": ROOT / "docs" / "harness.md",
}
"""The files of the archive, by name."""


def release(folder: Path) -> Path:
    """Write the archive to a folder, and return its path."""
    suite = read_suite()
    contents = {name: path.read_bytes() for name, path in FILES.items()}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents.items())
    stem = f"openvino-ir-suite-{suite.content}"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in {**contents, "SHA256SUMS": sums.encode()}.items():
            member = tarfile.TarInfo(f"{stem}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.tar.xz"
    path.write_bytes(lzma.compress(plain.getvalue(), preset=6))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER")
    path = release(parser.parse_args().output)
    print(f"wrote {path}: {path.stat().st_size:,} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
