"""Assign-3 and Assign-6: the outputs; what they store is read by ReadValue, and tested there."""

import numpy as np
import pytest

from irrun.inference.layer import infer
from irrun.opdef import Site, Variables
from kit import *


@pytest.mark.parametrize("version", [3, 6])
def test_hands_on_and_stores_for_the_next_run(version: int) -> None:
    op = operation(f"Assign-{version}", {"variable_id": "v"})
    variables = Variables()
    x = np.array([1.0, 2.0], np.float32)
    (out,) = op.run(x, variables=variables)
    assert out is x
    assert variables.read("v") is None
    variables.commit()
    assert variables.read("v") is not x
    np.testing.assert_array_equal(variables.values["v"], x)


@pytest.mark.parametrize("outputs", [0, 1])
def test_files_have_an_output_or_leave_it_out(outputs: int) -> None:
    op = operation("Assign-6", {"variable_id": "v"})
    values = infer(op, Site(outputs), [tensor("f32[2,?]")], {"variables": None})
    assert [(v.type.name, str(v.shape)) for v in values] == [("f32", "[2,?]")] * outputs
