"""``python -m irrun``."""

import sys
from pathlib import Path

if __name__ == "__main__" and not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parents[1]:
    del sys.path[0]  # the current folder, whose files belong to nobody in particular

from irrun.cli import main

if __name__ == "__main__":
    main()
