"""Set properties and hints, measure layers, look at operations, and write models."""

import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.properties as props
import openvino.properties.hint as hints
from openvino.properties.hint import PerformanceMode

model_path, image_path, out_path = sys.argv[1:]

core = ov.Core()
core.set_property("CPU", {hints.performance_mode: PerformanceMode.LATENCY})
core.set_property({props.enable_mmap: False})
print(core.available_devices, hints.inference_precision(), props.enable_profiling(), PerformanceMode.LATENCY)
config = {hints.performance_mode: PerformanceMode.THROUGHPUT, hints.inference_precision: ov.Type.f32}
config |= {hints.num_requests(): "2", props.inference_num_threads: 2, props.enable_profiling(): True}
config |= dict([props.log.level(props.log.Level.ERR), hints.enable_cpu_pinning(False)])

model = core.read_model(Path(model_path))
print(model)
compiled = core.compile_model(model, "CPU", config)
print(compiled)
print(compiled.get_property(hints.performance_mode), compiled.get_property("INFERENCE_PRECISION_HINT"))
print(compiled.get_property(props.model_name), compiled.get_property(props.execution_devices))
print(compiled.get_property(props.enable_profiling), compiled.get_property(props.optimal_number_of_infer_requests) > 0)
for wrong in (
    lambda: core.compile_model(model, "CPU", {"NO_SUCH_PROPERTY": 1}),
    lambda: compiled.get_property("NO_SUCH_PROPERTY"),
    lambda: core.compile_model(model, "NO_SUCH_DEVICE"),
):
    try:
        wrong()
    except RuntimeError:
        print("refused")

image = np.load(image_path)
request = compiled.create_infer_request()
print(request)
answers = {"profiled": request.infer([image])[compiled.output()].copy()}
infos = request.profiling_info
assert request.get_profiling_info()
executed = [info for info in infos if info.status == ov.ProfilingInfo.Status.EXECUTED]
print(len(executed) > 3, all(isinstance(info.real_time, timedelta) for info in infos), repr(infos[0]))
print(any("pool" in info.node_name for info in executed), sum((i.cpu_time for i in infos), timedelta()) > timedelta())

for node in sorted(model.get_ops(), key=lambda node: node.get_friendly_name()):
    print(repr(node), node.get_input_size(), [sorted(output.get_names()) for output in node.outputs()])
    if node.get_type_name() == "Convolution":
        print(sorted(node.get_attributes().items()), node.input(1).get_source_output().get_node().get_friendly_name())
    if node.get_friendly_name() == "flat_shape":
        print(node.data.tolist(), node.data.dtype)
print([node.get_type_name() for node in model.get_parameters() + model.get_results()])
print(repr(ov.Type.f32), repr(ov.Shape([1, 2])), ov.PartialShape([1, -1, (2, 5)]), repr(ov.Dimension(1, 4)))
print(repr(ov.Layout("NC...")), ov.Layout("nhwc"), repr(ov.Tensor(image)), repr(core))

with tempfile.TemporaryDirectory() as folder:
    for number, write in enumerate(
        (
            lambda path: ov.serialize(model, path),
            lambda path: ov.serialize(model, path, str(Path(path).with_name("weights.bin"))),
            lambda path: ov.save_model(model, path, compress_to_fp16=False),
        )
    ):
        path = str(Path(folder, f"written{number}.xml"))
        write(path)
        weights = Path(folder, "weights.bin") if number == 1 else Path(path).with_suffix(".bin")
        again = core.read_model(path, str(weights))
        print(again.friendly_name, weights.stat().st_size > 30000, again.inputs, again.outputs)
        answers[f"written{number}"] = core.compile_model(again, "CPU", config)(image)[0]
    ov.serialize(model, str(Path(folder, "new", "folder", "a.xml")))
    print(sorted(path.name for path in Path(folder, "new", "folder").iterdir()))

np.savez(out_path, **answers)
