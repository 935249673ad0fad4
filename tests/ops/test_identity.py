"""Identity-16."""

import numpy as np

from kit import *

VALUES = [
    Values("numbers", "Identity-16", [f32([[1, 2], [3, 4]])], [[1, 2], [3, 4]]),
    Values("strings", "Identity-16", [np.array(["a", "bc"])], np.array(["a", "bc"])),
    Values("scalar", "Identity-16", [np.int64(7)], np.int64(7)),
]

SHAPES = [
    Shapes("partial", "Identity-16", ["f32[2,?,1..8]"], "f32[2,?,1..8]"),
    Shapes("unknown-rank", "Identity-16", ["string[...]"], "string[...]"),
    Shapes("carries", "Identity-16", ["i64{1,?,3..5}"], "i64{1,?,3..5}"),
]

REFUSALS = [Refusal("ir205-two-inputs", "Identity-16", ["f32[2]", "f32[2]"])]

CASES = [
    *[Case(f"{np.dtype(t).name}", "Identity-16", [arange(2, 3, dtype=t)]) for t in (*NUMERIC, np.bool_)],
    *[Case(f"rank-{len(s)}{'-empty' * (0 in s)}", "Identity-16", [arange(*s)])
      for s in ((), (4,), (0, 2), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 3, 2))],
]  # fmt: skip
