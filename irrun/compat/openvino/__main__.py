"""``python -m irrun.compat.openvino SCRIPT``: run a script in which ``import openvino`` returns the stand-in."""

import runpy
import sys
from pathlib import Path

from irrun.compat.openvino import install

if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python -m irrun.compat.openvino SCRIPT [ARGUMENTS]")
    if not Path(sys.argv[1]).is_file():
        sys.exit(f"irrun: there is no script {sys.argv[1]}; check the path")
    install()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
