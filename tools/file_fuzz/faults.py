"""Cases that fail in every way there is. They show that a campaign reports each of them and goes on."""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from file_fuzz.cases import SECONDS

__all__ = ["FAULTS", "Faults"]

FAULTS = ("result", "exception", "out of memory", "slow", "crash", "exit", "result again", "hang")


@dataclass(frozen=True)
class Faults:
    """A case for each of ``FAULTS``, in this order."""

    seed: str
    bounded: bool = True

    @classmethod
    def of(cls, seed: str, folder: Path, stored: Path) -> Faults:
        return cls(seed)

    def warm_up(self) -> None:
        pass

    def run(self, number: int) -> Counter[str]:
        match FAULTS[number]:
            case "exception":
                raise ValueError("no IrrunError")
            case "out of memory":
                bytearray(1 << 31)
            case "slow":
                end = time.process_time() + 2.2
                while time.process_time() < end:
                    pass
            case "crash":
                ctypes.string_at(0)
            case "exit":
                os._exit(3)
            case "hang":
                time.sleep(1000)
        return Counter(["result"])

    def seconds(self, number: int) -> float:
        return SECONDS

    def keep(self, number: int, folder: Path, failed: BaseException | None) -> None:
        (folder / "case.txt").write_text(FAULTS[number])
