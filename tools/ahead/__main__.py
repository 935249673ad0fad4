"""Record which machine code kernels need, and make the package irrun-fast of it: see the package."""

from __future__ import annotations

import argparse
from pathlib import Path

from ahead.building import build
from ahead.recording import record
from irrun.fast.machine.ahead import TARGETS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools ahead", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="write which entries models need")
    recording.add_argument("models", nargs="*", type=Path, metavar="MODEL.xml")
    recording.add_argument("--each", type=int, default=40, metavar="N", help="random models of each kind [40]")
    building = commands.add_parser("build", help="compile the entries, and write a wheel")
    building.add_argument("folder", type=Path)
    building.add_argument("--target", action="append", choices=[*TARGETS], help="only this kind of processor")
    options = parser.parse_args()
    if options.command == "record":
        record(options.models, options.each)
    else:
        print(build(options.folder, options.target or [*TARGETS]))


if __name__ == "__main__":
    main()
