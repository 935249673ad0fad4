"""A model that adds up what it was given: its variable read, reset and set."""

import sys

import numpy as np
import openvino as ov

model_path, out_path = sys.argv[1:]
compiled = ov.Core().compile_model(model_path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
x = np.array([[1, 2]], np.float32)
answers = []

request, other = compiled.create_infer_request(), compiled.create_infer_request()
(total,) = request.query_state()
print(total.name, total.state.shape, total.state.data)
answers += [request.infer([x])[0], request.infer([x])[0], other.infer([x])[0]]
print(total.state.data)
total.reset()
answers.append(request.infer([x])[0])
request.infer([x])
request.reset_state()
answers.append(request.infer([x])[0])
total.state = ov.Tensor(np.array([[10, 20]], np.float32))
answers.append(request.infer([x])[0])

answers += [compiled(x)[0], compiled(x)[0], compiled.infer_new_request(x)[0]]
for state in compiled.query_state():  # pyright: ignore[reportGeneralTypeIssues, reportOptionalIterable]
    state.reset()
answers.append(compiled(x)[0])
compiled.reset_state()
answers.append(compiled(x)[0])

print(np.concatenate(answers))
np.savez(out_path, answers=np.concatenate(answers))
