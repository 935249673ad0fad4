"""What no golden output says: properties of the models, and values worked out by hand."""

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from irrun.testing import strategies as ir

MODELS = Path(__file__).parent.parent / "models"


def test_a_flat_picture_has_no_edges_inside(irrun):
    out = irrun.run(MODELS / "edges.xml", np.ones((1, 1, 6, 6), np.float32))
    assert not out["edges"][0, 0, 1:-1, 1:-1].any()


def test_a_dot(irrun):
    picture = np.zeros((1, 1, 6, 6), np.float32)
    picture[0, 0, 2, 2] = 1
    expected = np.zeros((1, 1, 6, 6))
    expected[0, 0, 1:4, 1:4] = [[0, 1, 0], [1, 4, 1], [0, 1, 0]]
    irrun.testing.assert_matches(
        MODELS / "edges.xml", picture, {"edges": expected.astype(np.float32), "strongest": [4]}
    )


@given(st.integers(0, 5).flatmap(lambda rows: ir.tensors("f32", (rows, 8), -100, 100)))
def test_probabilities_add_up_to_one(irrun, rows):
    classes = irrun.run(MODELS / "classifier.xml", rows)["classes"]
    assert classes.shape == (len(rows), 3)
    np.testing.assert_allclose(classes.sum(axis=1), 1, rtol=1e-5)
