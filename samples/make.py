"""Writes the sample models beside this file: `python samples/make.py` (needs the extra `test`).

They are what OpenVINO itself writes, save one dim that is falsified in wrong_dim.xml.
"""

from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset8 as ops
from openvino.utils.node_factory import NodeFactory

HERE = Path(__file__).parent
FACTORY = NodeFactory("opset8")


def parameter(name: str, *shape: int) -> ov.Node:
    return ops.parameter(ov.PartialShape(list(shape)), np.float32, name=name)


def const(name: str, values: object, dtype: type = np.int64) -> ov.Node:
    return ops.constant(np.asarray(values, dtype), name=name)


def node(type: str, name: str, *inputs: ov.Node, **attributes: object) -> ov.Node:
    made = FACTORY.create(type, [i.output(0) for i in inputs], attributes)
    made.set_friendly_name(name)
    return made


def save(file: str, output: ov.Node, *parameters: ov.Node) -> None:
    result = ops.result(output, name="out")
    output.output(0).set_names({"out"})
    for p in parameters:
        p.output(0).set_names({p.get_friendly_name()})
    model = ov.Model([result], list(parameters), file)  # pyright: ignore[reportGeneralTypeIssues]
    ov.serialize(model, HERE / f"{file}.xml")


def movement() -> None:
    """The four examples of Broadcast-3 and the three of Tile-1 in the specification."""
    broadcasts = {
        "broadcast_numpy": ((16, 1, 1), [1, 16, 50, 50], None, "numpy"),
        "broadcast_explicit_channels": ((16,), [1, 16, 50, 50], [1], "explicit"),
        "broadcast_explicit_spatial": ((50, 50), [1, 50, 50, 16], [1, 2], "explicit"),
        "broadcast_bidirectional": ((16, 1, 1), [1, 1, 50, 50], None, "bidirectional"),
    }
    for file, (shape, target, axes, mode) in broadcasts.items():
        data = parameter("data", *shape)
        inputs = [data, const("target_shape", target)] + ([const("axes_mapping", axes)] if axes else [])
        save(file, node("Broadcast", "broadcast", *inputs, mode=mode), data)
    tiles = {
        "tile_equal": ((2, 3, 4), [1, 2, 3]),
        "tile_data_promoted": ((2, 3, 4), [5, 1, 2, 3]),
        "tile_repeats_promoted": ((5, 2, 3, 4), [1, 2, 3]),
    }
    for file, (shape, repeats) in tiles.items():
        data = parameter("data", *shape)
        save(file, node("Tile", "tile", data, const("repeats", repeats)), data)


def elementwise() -> None:
    """clamp(a * scale + b, 0, 6) for a batch of any size, with every operand broadcast."""
    a, b = parameter("a", -1, 3, 4), parameter("b", 3, 1)
    scale = const("scale", [0.5, 1.0, 2.0, 4.0], np.float32)
    total = node("Add", "add", node("Multiply", "multiply", a, scale), b)
    save("elementwise", node("Clamp", "clamp", total, min=0.0, max=6.0), a, b)


def convnet() -> None:
    """A small convolutional classifier of 28x28 images into ten classes, with random weights."""
    rng = np.random.default_rng(0)

    def weights(name: str, *shape: int) -> ov.Node:
        fan_in = int(np.prod(shape[1:]))
        return const(name, rng.standard_normal(shape) / np.sqrt(fan_in), np.float32)

    def block(name: str, x: ov.Node, channels: int, into: int) -> ov.Node:
        conv = node(
            "Convolution", f"{name}/conv", x, weights(f"{name}/weights", into, channels, 3, 3),
            strides=[1, 1], pads_begin=[1, 1], pads_end=[1, 1], dilations=[1, 1],
        )  # fmt: skip
        relu = node("Relu", f"{name}/relu", node("Add", f"{name}/add", conv, weights(f"{name}/bias", 1, into, 1, 1)))
        return node(
            "MaxPool", f"{name}/pool", relu, strides=[2, 2], pads_begin=[0, 0], pads_end=[0, 0], kernel=[2, 2],
            dilations=[1, 1],
        )  # fmt: skip

    image = parameter("image", 1, 1, 28, 28)
    features = block("block2", block("block1", image, 1, 8), 8, 16)
    flat = node("Reshape", "flatten", features, const("flat_shape", [0, -1]), special_zero=True)
    logits = node("MatMul", "logits", flat, weights("classifier", 10, 784), transpose_a=False, transpose_b=True)
    save("convnet", node("Softmax", "probabilities", logits, axis=1), image)
    np.save(HERE / "image.npy", rng.random((1, 1, 28, 28), np.float32))


def swiglu() -> None:
    """down(silu(gate(x)) * up(x)): for x = 1, the product exceeds the range of f16 in three elements."""
    rng = np.random.default_rng(0)

    def dense(name: str, x: ov.Node, weights: np.ndarray) -> ov.Node:
        constant = const(f"{name}/weights", weights, np.float32)
        return node("MatMul", name, x, constant, transpose_a=False, transpose_b=True)

    x = parameter("x", -1, 8)
    gate = dense("gate", x, rng.normal(0, 30, (16, 8)))
    up = dense("up", x, rng.normal(0, 300, (16, 8)))
    product = node("Multiply", "product", node("Swish", "silu", gate), up)
    save("swiglu", dense("down", product, rng.normal(0, 1e-3, (8, 16))), x)


def next_token() -> None:
    """A model of 32 tokens, and a copy with weights in int4 and int8, in which int4 destroys the layer "up".

    Two of the 16 channels that "up" reads are 40 times smaller than the others, and their weights 40 times greater.
    """
    rng = np.random.default_rng(3)
    gain = np.ones(16, np.float32)
    gain[[2, 9]] = 1 / 40
    matrices = {
        "embeddings": rng.normal(0, 1, (32, 16)),
        "up": rng.normal(0, 0.3, (32, 16)) / gain,
        "down": rng.normal(0, 0.3, (16, 32)),
        "head": rng.normal(0, 1, (32, 16)),
    }

    def plain(name: str) -> ov.Node:
        return const(f"{name}/weights", matrices[name], np.float32)

    def compressed(name: str, bits: int) -> ov.Node:
        matrix = matrices[name]
        groups = matrix.reshape(len(matrix), -1, 16)
        scales = (np.abs(groups).max(-1, keepdims=True) / (2 ** (bits - 1) - 1)).astype(np.float16)
        codes = np.rint(groups / scales).astype(np.int8)
        type = ov.Type.i4 if bits == 4 else ov.Type.i8
        stored = ov.op.Constant(type, ov.Shape(codes.shape), codes.reshape(-1).tolist())
        stored.set_friendly_name(f"{name}/weights")
        wide = node("Convert", f"{name}/wide", stored, destination_type="f16")
        scaled = node("Multiply", f"{name}/scaled", wide, const(f"{name}/scales", scales, np.float16))
        whole = node("Reshape", f"{name}/whole", scaled, const(f"{name}/shape", matrix.shape), special_zero=False)
        return node("Convert", f"{name}/decompressed", whole, destination_type="f32")

    for file, bits in (("next_token", {}), ("next_token_int4", {"up": 4, "down": 4, "head": 8})):
        weights = {name: compressed(name, bits[name]) if name in bits else plain(name) for name in matrices}
        ids = ops.parameter(ov.PartialShape([1, -1]), np.int64, name="ids")
        x = node("Gather", "embeddings", weights["embeddings"], ids, const("axis", 0))
        scaled = node("Multiply", "gain", x, const("gain/channels", gain, np.float32))
        up = node("MatMul", "up", scaled, weights["up"], transpose_a=False, transpose_b=True)
        down = node("MatMul", "down", node("Swish", "silu", up), weights["down"], transpose_a=False, transpose_b=True)
        total = node("Add", "total", x, down)
        save(file, node("MatMul", "head", total, weights["head"], transpose_a=False, transpose_b=True), ids)


def wrong_dim() -> None:
    """broadcast_numpy with 48 where the output is 50 wide: OpenVINO runs it without a word."""
    text = (HERE / "broadcast_numpy.xml").read_text()
    output = text.index("<output>", text.index('type="Broadcast"'))
    last = text.index("</port>", output)
    at = text.rindex("<dim>50</dim>", output, last)
    (HERE / "wrong_dim.xml").write_text(text[:at] + "<dim>48</dim>" + text[at + len("<dim>50</dim>") :])
    (HERE / "wrong_dim.bin").write_bytes((HERE / "broadcast_numpy.bin").read_bytes())


def wrong_scale() -> None:
    """elementwise with one weight of 4.5 instead of 4, for `irrun compare`."""
    weights = np.fromfile(HERE / "elementwise.bin", np.float32)
    weights[3] = 4.5
    weights.tofile(HERE / "wrong_scale.bin")
    (HERE / "wrong_scale.xml").write_text((HERE / "elementwise.xml").read_text())


if __name__ == "__main__":
    movement()
    elementwise()
    convnet()
    swiglu()
    next_token()
    wrong_dim()
    wrong_scale()
