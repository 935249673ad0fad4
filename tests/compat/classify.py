"""Which class a picture is of, asked in every way that there is: by name, by position, by port, as a Tensor."""

import sys

import numpy as np
import openvino as ov

model_path, image_path, out_path = sys.argv[1:]

core = ov.Core()
model = core.read_model(model_path)
print(model.friendly_name, len(model.inputs), len(model.outputs))
image_port = model.input(0)
print(image_port.any_name, image_port.shape, image_port.partial_shape, image_port.element_type.to_dtype())
_, _, height, width = image_port.shape
assert model.input("image") == image_port

compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
image = np.load(image_path)
assert image.shape[2:] == (height, width)

answers = {}
probabilities = compiled.output(0)
answers["array"] = compiled(image)[probabilities]
answers["list"] = compiled([image])[0]
answers["name"] = compiled({"image": image})["out"]
answers["position"] = compiled({0: image}).to_tuple()[0]
answers["port"] = next(iter(compiled.infer_new_request({compiled.input(): image}).values()))
answers["double"] = compiled(image.astype(np.float64))[0]
answers["tensor"] = compiled(ov.Tensor(image))["out"]

request = compiled.create_infer_request()
answers["request"] = request.infer({"image": image})["out"]
request.set_tensor("image", ov.Tensor(np.zeros_like(image)))
request.infer()
answers["black"] = request.get_output_tensor(0).data.copy()
request.get_input_tensor().data[:] = 1
request.infer()
answers["white"] = request.get_tensor(probabilities).data.copy()
assert list(request.results.keys()) == [probabilities]

for name, answer in answers.items():
    top = np.argsort(answer[0])[::-1][:3]
    print(name, answer.shape, answer.dtype, top)

for wrong in ({"picture": image}, image[:, :, :5], ov.Tensor(image.astype(np.float64))):
    try:
        compiled(wrong)
    except RuntimeError:
        print("refused")
try:
    model.output("nothing")
except RuntimeError:
    print("no such output")

np.savez(out_path, **answers)
