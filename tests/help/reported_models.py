"""Models that the tests of reports share."""

from __future__ import annotations

import numpy as np

from nets import Net, Ref

TWO = ("FP32", "2")


def chain(net: Net, x: Ref, names: list[str], type: str = "ReLU") -> Ref:
    """Add a chain of layers with these names to a model."""
    for name in names:
        x = net.add(type, [x], [TWO], name=name)
    return x


def blocks(count: int) -> Net:
    """``count`` blocks named as in a transformer: an attention of three layers, a block of four, and a residual Add."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    for block in range(count):
        prefix = f"/model/layers.{block}"
        weight = net.const("f32", "2", np.array([block, 1], np.float32).tobytes(), name=f"{prefix}/weight")
        inner = net.add("Add", [x, weight], [TWO], name=f"{prefix}/attn/Add")
        inner = chain(net, inner, [f"{prefix}/attn/Tanh", f"{prefix}/attn/ReLU"], "Tanh")
        inner = chain(net, inner, [f"{prefix}/mlp/{number}" for number in range(4)], "Sigmoid")
        x = net.add("Add", [inner, x], [TWO], name=f"{prefix}/Add")
    net.result(x, name="y")
    return net


def shared_activation(count: int) -> Net:
    """Convolution-like blocks ``m.N``, whose activations all have the name of one module, ``m.9.act``."""
    net = Net()
    x = net.parameter("f32", "2", name="x")
    for block in range(count):
        x = chain(net, x, [f"m.{block}.a", f"m.{block}.b", f"m.{block}.c"], "Tanh")
        x = net.add("ReLU", [x], [TWO], name=f"m.{count}.act/ReLU_{block}")
    x = chain(net, x, [f"m.{count}.head{number}" for number in range(5)], "Sigmoid")
    net.result(x)
    return net
