"""Classify a picture that is larger than the model expects: the model prepares it itself."""

import sys

import numpy as np
import openvino as ov
from openvino.preprocess import PrePostProcessor, ResizeAlgorithm

model_path, image_path, out_path = sys.argv[1:]

core = ov.Core()
model = core.read_model(model_path)
assert len(model.inputs) == 1
assert len(model.outputs) == 1

digit = np.load(image_path)[0, 0]
grey = np.kron(digit / max(float(digit.max()), 1e-6) * 255, np.ones((2, 3))).astype(np.uint8)  # 56 rows, 84 columns
input_tensor = np.expand_dims(np.expand_dims(grey, -1), 0)

ppp = PrePostProcessor(model)
ppp.input().tensor().set_shape(input_tensor.shape).set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
ppp.input().preprocess().convert_element_type(ov.Type.f32).resize(ResizeAlgorithm.RESIZE_LINEAR).mean(8.0).scale(
    [247.0]
)
ppp.input().model().set_layout(ov.Layout("NCHW"))
ppp.output().tensor().set_element_type(ov.Type.f32)
prepared = ppp.build()

print(prepared)
print(repr(prepared.input()), prepared.input().shape, prepared.output().any_name)
print(sorted({op.get_type_name() for op in prepared.get_ops()} - {"Divide", "Multiply"}))

compiled = core.compile_model(prepared, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
results = compiled.infer_new_request({0: input_tensor})
predictions = next(iter(results.values()))
probabilities = predictions.reshape(-1)
top = np.argsort(probabilities)[-3:][::-1]
print("class_id", *top)
answers = {"probabilities": probabilities}

# other ways to prepare: any size, colours, other interpolation, axes, and what is done with the output
colour = np.arange(1 * 7 * 9 * 3, dtype=np.uint8).reshape(1, 7, 9, 3)
for number, algorithm in enumerate((ResizeAlgorithm.RESIZE_NEAREST, ResizeAlgorithm.RESIZE_CUBIC)):
    x = ov.opset13.parameter([1, 3, 6, 6], np.float32, name="picture")
    plain = ov.Model([ov.opset13.relu(x)], [x], "plain")
    ppp = PrePostProcessor(plain)
    tensor = ppp.input().tensor()
    tensor.set_element_type(ov.Type.u8).set_layout("NHWC").set_spatial_dynamic_shape()
    tensor.set_color_format(ov.preprocess.ColorFormat.BGR)
    steps = ppp.input().preprocess().convert_color(ov.preprocess.ColorFormat.RGB).convert_element_type(ov.Type.f32)
    steps.resize(algorithm).mean([1.0, 2.0, 3.0]).scale([2.0, 4.0, 8.0])
    ppp.input().model().set_layout("NCHW")
    ppp.output().model().set_layout("NCHW")
    ppp.output().tensor().set_layout("NHWC").set_element_type(ov.Type.f64 if number else ov.Type.f32)
    built = ppp.build()
    print(built.inputs, built.output().shape, built.output().element_type)
    answers[f"colour{number}"] = core.compile_model(built, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(colour)[0]

for wrong in (
    lambda: PrePostProcessor(model).input("nothing"),
    lambda: PrePostProcessor(model).input(5),
    lambda: ov.Layout("N,C"),
):
    try:
        wrong()
    except RuntimeError:
        print("refused")
ppp = PrePostProcessor(model)
ppp.input().tensor().set_element_type(ov.Type.u8)
ppp.input().preprocess().mean(3.0)
try:
    ppp.build()
except RuntimeError:
    print("mean of integers refused")

np.savez(out_path, **answers)
