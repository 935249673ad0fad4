"""A model of a dynamic batch: reshaped in every way, shared memory, asynchronous requests, a queue."""

import sys

import numpy as np
import openvino as ov
from openvino import AsyncInferQueue, Core, PartialShape, Tensor, Type

model_path, out_path = sys.argv[1:]
PRECISE = {"INFERENCE_PRECISION_HINT": "f32"}

core = Core()
model = core.read_model(model_path)
rows = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
answers = {}

port = model.input()
print(port.partial_shape, port.partial_shape.is_dynamic, model.is_dynamic(), model.output(0).partial_shape)
for shape in (
    [4, 8],
    PartialShape([-1, 8]),
    [(1, 4), 8],
    {"rows": [4, 8]},
    {0: [ov.Dimension(2, 5), -1]},
    {port: [4, 8]},
):
    try:
        model.reshape(shape)
    except RuntimeError:
        print("refused")
    print(model.input().partial_shape, model.outputs[0].partial_shape, model.is_dynamic())
try:
    model.reshape([4, 7])
except RuntimeError:
    print("refused", model.input().partial_shape)
compiled = core.compile_model(model, "AUTO", PRECISE)
print(compiled.input(0).shape, compiled.output("classes").shape, compiled.output(0).get_element_type() == Type.f32)
answers["static"] = compiled(rows)["classes"]

model.reshape("?,8")
compiled = ov.compile_model(model, "CPU", PRECISE)
for batch in (1, 3, 2):
    answers[f"batch{batch}"] = compiled({"rows": rows[:batch]})[0]

# a tensor over an array sees what becomes of the array; a copy does not
memory = rows.copy()
request = compiled.create_infer_request()
request.set_input_tensor(Tensor(memory, shared_memory=True))
request.infer()
memory[:] = 0
answers["shared"] = request.infer()[0]
memory[:] = rows
request.set_input_tensor(Tensor(memory))
memory[:] = 0
answers["copied"] = request.infer()[0]
before = request.get_output_tensor().data
kept = request.infer()[0]
request.infer(rows[::-1])
print(np.array_equal(kept, answers["copied"]), before.shape)

# asynchronous, with and without a callback
request.start_async({"rows": rows})
request.wait()
answers["async"] = request.get_output_tensor().data.copy()
seen = []
request.set_callback(seen.append, "done")
request.start_async(rows[:2])
request.wait()
request.start_async(rows[:2], userdata="other")
request.wait()
print(seen)


def fail(_):
    raise ValueError("no")


request.set_callback(fail, None)
request.start_async(rows)
try:
    request.wait()
except RuntimeError as error:
    print("no" in str(error))

queue = AsyncInferQueue(compiled, 2)
found = {}
queue.set_callback(lambda request, number: found.update({number: request.get_output_tensor().data.copy()}))
for number in range(4):
    queue.start_async({0: rows[: number + 1]}, number)
queue.wait_all()
answers |= {f"queue{number}": array for number, array in found.items()}

print(
    len(queue),
    sorted(found),
    PartialShape("1,?,2..5"),
    PartialShape.dynamic(),
    ov.Shape([1, 2]),
    ov.Shape([1, 2]) == (1, 2),
)
np.savez(out_path, **answers)
