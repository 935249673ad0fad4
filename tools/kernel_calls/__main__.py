"""Call compiled kernels with random inputs in odd memory, and compare them with ``exact``: see the package."""

import sys

from kernel_calls.command import main

if __name__ == "__main__":
    sys.exit(main())
