"""Writes models/ anew: `python make.py` (needs openvino). The goldens are written by `pytest --irrun-update`."""

from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops

MODELS = Path(__file__).parent / "models"
RNG = np.random.default_rng(0)


def const(name: str, *shape: int) -> ov.Node:
    return ops.constant(RNG.standard_normal(shape).astype(np.float32), name=name)


def save(name: str, result: ov.Node, *inputs: ov.Node) -> None:
    for node in inputs:
        node.output(0).set_names({node.friendly_name})
    ov.serialize(ov.Model([result], list(inputs), name), MODELS / f"{name}.xml")


def classifier() -> None:
    """Any number of rows of eight measurements into the probabilities of three classes."""
    rows = ops.parameter([-1, 8], np.float32, name="rows")
    hidden = ops.relu(ops.add(ops.matmul(rows, const("w1", 8, 4), False, False, name="dense1"), const("b1", 4)))
    scores = ops.matmul(hidden, const("w2", 4, 3), False, False, name="dense2")
    classes = ops.softmax(scores, axis=1, name="softmax")
    classes.output(0).set_names({"classes"})
    save("classifier", classes, rows)


def edges() -> None:
    """The edges of a grey picture: a 3x3 convolution, and how strong the strongest edge is."""
    picture = ops.parameter([1, 1, 6, 6], np.float32, name="picture")
    kernel = ops.constant(np.float32([[[[0, 1, 0], [1, -4, 1], [0, 1, 0]]]]), name="kernel")
    found = ops.abs(ops.convolution(picture, kernel, [1, 1], [1, 1], [1, 1], [1, 1], name="convolution"), name="abs")
    found.output(0).set_names({"edges"})
    strongest = ops.reduce_max(found, ops.constant(np.int64([1, 2, 3])), name="max")
    strongest.output(0).set_names({"strongest"})
    picture.output(0).set_names({"picture"})
    ov.serialize(ov.Model([found, strongest], [picture], "edges"), MODELS / "edges.xml")


if __name__ == "__main__":
    MODELS.mkdir(exist_ok=True)
    classifier()
    edges()
