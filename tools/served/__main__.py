"""Run small language models of many families as a server does, in their stateful and their paged form: see the package."""

import sys

from served.command import main

if __name__ == "__main__":
    sys.exit(main())
