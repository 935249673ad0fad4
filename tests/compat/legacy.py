"""A model of IR v10: its ports are called after its layers, and have other types than the layers within."""

import sys

import numpy as np
import openvino as ov

model_path, out_path = sys.argv[1:]
core = ov.Core()
model = core.read_model(model_path)
compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
for port in (*model.inputs, *model.outputs, *compiled.inputs, *compiled.outputs):
    print(port.any_name, port.element_type, port.shape)
halves, counts = np.array([0.5, 1.5], np.float32), np.array([3, 4], np.int64)
results = compiled({"halves": halves, "counts": counts})
print([array.dtype for array in results.values()])
np.savez(out_path, doubled=results["double"], counts=results[1])
