"""Axes and lengths that may be floats, as NaN and Inf: refused by a clause, in the file and in a run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irrun
from irrun import build as b

X = np.zeros((2, 3), np.float32)
CALLS = {
    "Squeeze": lambda x, n: b.Squeeze(x, n),
    "Unsqueeze": lambda x, n: b.Unsqueeze(x, n),
    "VariadicSplit axis": lambda x, n: b.VariadicSplit(x, n, [1, 2], outputs=2)[0],
    "VariadicSplit lengths": lambda x, n: b.VariadicSplit(x, 0, b.Concat([n, n], axis=0), outputs=2)[0],
}


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_no_integer(name: str, exact: bool, number: float) -> None:
    x, n = b.parameter([2, 3], name="x"), b.parameter([1], name="n")
    value = np.array([number], np.float32)
    with pytest.raises(irrun.ModelError, match=r"IR403.*no integer"):
        irrun.compile(b.model(CALLS[name](x, b.constant(value))), exact=exact)
    executable = irrun.compile(b.model(CALLS[name](x, n)), exact=exact)
    feeds: dict[str, Any] = {"x": X, "n": value}
    with pytest.raises(irrun.ExecutionError, match=r"IR605.*no integer"):
        executable(feeds)
