"""Fork at random moments of first runs, while kernels are compiled and linked, and let each child compute: `forks 200`.

Each child must give what the defining kernels give, within a minute. The exit status is the number of processes of
which a child does not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import irrun
import irrun.build as b

_FORKS = 10
"""The children of a process."""
_MOST_SECONDS = 60


def main() -> None:
    """Make as many forks as the first argument says; the second one is the seed."""
    if len(sys.argv) > 2 and sys.argv[1] == "one":
        sys.exit(_first_run(int(sys.argv[2]), int(sys.argv[3])))
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    failed = 0
    for number, first in enumerate(range(0, count, _FORKS)):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "IRRUN_FAST": "always"}
            forks = min(_FORKS, count - first)
            command = [sys.executable, "-m", "tools", "forks", "one", str(forks), str(seed + number)]
            failed += subprocess.run(command, env=environment, check=False).returncode != 0
    print(f"{count} forks, {failed} processes with a child that hangs or is wrong")
    sys.exit(failed)


def _first_run(forks: int, seed: int) -> int:
    """Run a model in a thread for the first time, and fork meanwhile. Return the number of children that fail."""
    numbers = np.random.default_rng(seed)
    weights = b.constant(numbers.standard_normal((64, 64)), "f32")
    x = b.parameter([32, 64], "f32", name="x")
    model = b.model({"out": b.SoftMax(b.Gelu(b.MatMul(b.Gelu(b.MatMul(x, weights)), weights)), axis=1)}, inputs=[x])
    feeds = [numbers.standard_normal((32, 64)).astype(np.float32)]
    (expected,) = irrun.compile(model, exact=True)(feeds).arrays

    def is_right() -> bool:
        (found,) = irrun.compile(model)(feeds).arrays
        return bool(np.abs(found - expected).max() < 1e-5)

    running = threading.Thread(target=is_right)
    running.start()
    children = []
    for _ in range(forks):
        time.sleep(numbers.uniform(0, 0.4))
        child = os.fork()
        if child == 0:
            signal.alarm(_MOST_SECONDS)  # its default action ends the process, whatever waits
            os._exit(0 if is_right() else 1)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    running.join()
    return sum(map(bool, statuses))


if __name__ == "__main__":
    main()
