"""Run many inputs in a queue of requests, with callbacks."""

import sys
import threading

import numpy as np
import openvino as ov

model_path, image_path, out_path = sys.argv[1:]

core = ov.Core()
model = core.read_model(model_path)
image = np.load(image_path)
images = [np.clip(image * scale, 0, 1).astype(np.float32) for scale in (0, 0.25, 0.5, 1, 2, 4)]

compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"})
queue = ov.AsyncInferQueue(compiled, 3)
print(len(queue), queue.is_ready())

lock = threading.Lock()
answers: dict[str, np.ndarray] = {}
threads = set()


def completed(infer_request: ov.InferRequest, name: str) -> None:
    predictions = next(iter(infer_request.results.values()))
    with lock:
        answers[name] = predictions.reshape(-1).copy()
        threads.add(threading.get_ident())


queue.set_callback(completed)
for number, picture in enumerate(images):
    queue.start_async({0: picture}, f"image{number}")
queue.wait_all()
print(sorted(answers), threading.get_ident() in threads)

# a queue without callback: the results stay in its requests
queue = ov.AsyncInferQueue(compiled, 2)
for picture in images[2:4]:
    number = queue.get_idle_request_id()
    assert 0 <= number < 2
    queue.start_async({"image": ov.Tensor(picture)}, number)
queue.wait_all()
print(sorted(queue.userdata), len(list(queue)))
for request in queue:
    assert isinstance(request, ov.InferRequest)
    assert request.latency >= 0
    assert request.results["out"].shape == (1, 10)

# single requests
finished = threading.Event()
request = compiled.create_infer_request()
request.set_callback(lambda data: finished.set() if data == "data" else None, "data")
request.start_async({"image": images[1]})
request.wait()
print(finished.wait(10), request.wait_for(1000))
answers["single"] = request.get_output_tensor().data.copy()
requests = [compiled.create_infer_request() for _ in range(4)]
for one, picture in zip(requests, images):
    one.start_async([picture], share_inputs=True)
for number, one in enumerate(requests):
    one.wait()
    answers[f"request{number}"] = one.get_tensor("out").data.copy()

for wrong in (lambda: queue.start_async({"nothing": image}), lambda: queue.start_async({0: image[:, :, :3]})):
    try:
        wrong()
        queue.wait_all()
    except RuntimeError:
        print("refused")

np.savez(out_path, **dict(sorted(answers.items())))
