"""Build LeNet from operations, and run it on a batch of digits."""

import sys

import numpy as np
import openvino as ov
from openvino import op, opset1, opset8
from openvino.preprocess import PrePostProcessor

(out_path,) = sys.argv[1:]

rng = np.random.default_rng(3)


def shape_and_length(shape: list[int]) -> tuple[list[int], int]:
    return shape, int(np.prod(shape))


def weights(shape: list[int]) -> op.Constant:
    dims, length = shape_and_length(shape)
    return op.Constant(ov.Type.f32, ov.Shape(dims), (rng.standard_normal(length) / np.sqrt(length / dims[0])).tolist())


no_padding = [0, 0]
digits = op.Parameter(ov.Type.f32, ov.Shape([1, 1, 28, 28]))
digits.set_friendly_name("digits")
digits.output(0).set_names({"digits"})

convolution_1 = opset8.convolution(digits, weights([20, 1, 5, 5]), [1, 1], no_padding, no_padding, [1, 1])
add_1 = opset8.add(convolution_1, weights([1, 20, 1, 1]))
pool_1 = opset1.max_pool(add_1, [2, 2], no_padding, no_padding, [2, 2], "ceil")
convolution_2 = opset8.convolution(pool_1, weights([50, 20, 5, 5]), [1, 1], no_padding, no_padding, [1, 1], "explicit")
add_2 = opset8.add(convolution_2, weights([1, 50, 1, 1]))
pool_2 = opset1.max_pool(add_2, [2, 2], no_padding, no_padding, [2, 2], "ceil")
rows = op.Constant(ov.Type.i64, ov.Shape([2]), [0, 800])
flat = opset8.reshape(pool_2, rows, True)
product_1 = opset8.matmul(flat, weights([500, 800]), False, True)
relu = opset8.relu(opset8.add(product_1, weights([1, 500])))
product_2 = opset8.matmul(relu, weights([10, 500]), False, True)
logits = opset8.add(product_2, weights([1, 10]))
softmax = opset8.softmax(logits, 1)
softmax.output(0).set_names({"probabilities"})

for node in (digits, convolution_1, pool_1, flat, relu, softmax):
    print(node.get_type_name(), node.shape, node.get_output_size(), node.get_element_type())
print(repr(digits), relu.input(0), relu.input_value(0).shape, softmax.output(0))

model = ov.Model([softmax], [digits], "lenet")
print(model)
print(model.get_friendly_name(), len(model.get_ops()), [p.get_friendly_name() for p in model.get_parameters()])
kinds = [o.get_type_name() for o in model.get_ordered_ops() if o.get_type_name() != "Constant"]
print(kinds)
pool = next(o for o in model.get_ordered_ops() if o.get_type_name() == "MaxPool")
attributes = pool.get_attributes()
print([attributes[name] for name in ("strides", "pads_begin", "pads_end", "kernel", "rounding_type")])

model.get_parameters()[0].set_layout(ov.Layout("NCHW"))
print(ov.layout_helpers.has_batch(ov.Layout("NCHW")), ov.get_batch(model))
ov.set_batch(model, 4)
print(model.input().shape, model.output().shape, ov.get_batch(model))

ppp = PrePostProcessor(model)
ppp.input().tensor().set_element_type(ov.Type.u8)
model = ppp.build()

compiled = ov.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
batch = rng.integers(0, 3, (4, 1, 28, 28)).astype(np.uint8)
answers = {"lenet": compiled(batch)["probabilities"]}
print([int(i) for i in answers["lenet"].argmax(axis=1)])

# operators and functions of several operation sets
for number, ops in ((1, ov.opset1), (8, ov.opset8), (13, ov.opset13)):
    a = ops.parameter([2, -1, 4], np.float32, name="a")
    b = ops.parameter(ov.PartialShape([4]), ov.Type.f32, name="b")
    node = (a + b) * ops.constant(np.float32(2)) - ops.constant(np.float32(1))
    node = ops.concat([ops.clamp(node, -1.0, 6.0), ops.tanh(a) / ops.constant(np.float32(3))], 2)
    node = ops.transpose(ops.reduce_sum(node, [2], keep_dims=True), [1, 0, 2])
    halves = ops.split(ops.squeeze(node, [2]), 1, 2)
    result = ops.result(ops.power(halves.output(1), ops.constant(2.0, np.float32)))
    small = ov.Model([result], [a, b], f"small{number}")
    print([str(port.partial_shape) for port in small.inputs], small.output().partial_shape, halves.get_output_size())
    compiled = ov.Core().compile_model(small, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    answers[f"small{number}"] = compiled([np.ones((2, 3, 4), np.float32) / 2, np.arange(4, dtype=np.float32)])[0]

for wrong in (
    lambda: ov.opset8.add(op.Parameter(ov.Type.f32, ov.Shape([2])), op.Parameter(ov.Type.f32, ov.Shape([3]))),
    lambda: ov.opset8.softmax(digits, 9),
):
    try:
        wrong()
    except RuntimeError:
        print("refused")

np.savez(out_path, **answers)
