"""``python -m irrun.compat.openvino SCRIPT``: run a script in which ``import openvino`` returns the stand-in."""

import runpy
import sys
from pathlib import Path

from irrun.compat.openvino import install

if __name__ == "__main__":
    install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
