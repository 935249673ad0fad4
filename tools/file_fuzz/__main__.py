"""Run a fuzzer: ``python -m tools file_fuzz mutants`` or ``python -m tools file_fuzz graphs``."""

import sys

from file_fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
