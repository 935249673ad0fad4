"""Reshape a model to the size of the picture, and run it without any resizing."""

import sys

import numpy as np
import openvino as ov

model_path, out_path = sys.argv[1:]

core = ov.Core()
model = core.read_model(model_path)
print([output.any_name for output in model.outputs])

height, width = 9, 11
image = (np.arange(height * width * 3) * 7 % 256).astype(np.uint8).reshape(1, height, width, 3)
n, h, w, c = image.shape
model.reshape({model.input().any_name: ov.PartialShape((n, c, h, w))})
print(model.input().partial_shape, model.input().shape, model.output().shape)

ppp = ov.preprocess.PrePostProcessor(model)
ppp.input().tensor().set_element_type(ov.Type.u8).set_layout(ov.Layout("NHWC"))
ppp.input().model().set_layout(ov.Layout("NCHW"))
ppp.output().tensor().set_element_type(ov.Type.f32)
model = ppp.build()
print(model)

compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
request = compiled.create_infer_request()
request.set_input_tensor(ov.Tensor(image))
request.infer()
answers = {"first": request.get_output_tensor().data.copy()}
print(answers["first"].shape, request.get_input_tensor().shape, request.get_input_tensor().element_type)
print(repr(request.get_output_tensor()), repr(request.get_output_tensor().shape))

# shapes with unknown dims
model.reshape([-1, (4, 16), -1, 3])
print(model.input().partial_shape, model.is_dynamic(), repr(model.input().partial_shape[1]))
compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
print(compiled)
answers["second"] = compiled(image[:, :5, :6])[0]
print(answers["second"].shape, compiled.input().get_partial_shape())
for dims in ([1, 3, 6, 3], [1, 20, 6, 3]):
    try:
        compiled(np.zeros(dims, np.uint8))
    except RuntimeError:
        print("refused", dims)

np.savez(out_path, **answers)
