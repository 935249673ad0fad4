"""Run a fuzzer: ``python -m tests.fuzz mutants`` or ``python -m tests.fuzz graphs``."""

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent

if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))  # `python -m tests.fuzz` adds only the root of the repository
    from fuzz.command import main

    sys.exit(main())
