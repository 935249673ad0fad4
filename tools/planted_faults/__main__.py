"""Plant faults into irrun, and see whether ``irrun fuzz`` against OpenVINO finds them: see the package."""

import sys

from planted_faults.command import main

if __name__ == "__main__":
    sys.exit(main())
