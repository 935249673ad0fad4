"""Run the fuzzer of files: ``python -m tools file_fuzz``."""

import sys

from file_fuzz.command import main

if __name__ == "__main__":
    sys.exit(main())
