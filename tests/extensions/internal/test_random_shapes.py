"""Random dims, among them 0 and 1: the kernels give what the shape rules promise, in types of any width."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from internal_faults import LAYERS as TYPES
from internal_operations import ran
from irrun.growing.internal import LAYERS, Draw

DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)


@pytest.mark.parametrize("type", LAYERS)
def test_kernel_and_shape_rule(type: str) -> None:
    for seed in range(24):
        arrays, attributes = LAYERS[type](Draw(np.random.default_rng(seed), DTYPES[seed % 4]))
        try:
            ran(type, arrays, **attributes)
        except Exception as error:
            error.add_note(f"seed {seed}: {[array.shape for array in arrays]} {attributes}")
            raise


def test_every_type_is_drawn() -> None:
    assert {*LAYERS} == {*TYPES}
