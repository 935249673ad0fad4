"""Types, dims, shapes and tensors, and what a request says of its ports: each expression with its value or error."""

import sys

import numpy as np
from openvino import AsyncInferQueue, Core, Dimension, PartialShape, Shape, Tensor, Type  # noqa: F401

model_path, out_path = sys.argv[1:]


def show(text):
    try:
        value = eval(text)
        value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
        said = f"{value!r}"
    except Exception as error:
        known = (IndexError, KeyError, TypeError, ValueError, RuntimeError)
        said = next(kind.__name__ for kind in known if isinstance(error, kind))
    print(f"{text}  ->  {said}")


for name in [
    "boolean",
    "bf16",
    "f16",
    "f32",
    "f64",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "u1",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "nf4",
    "f8e4m3",
    "f8e5m2",
    "string",
]:
    for ask in ("", ".bitwidth", ".size", ".is_real()", ".is_integral()", ".is_static()", ".is_dynamic()",
                ".to_dtype()", ".to_string()", ".type_name"):  # fmt: skip
        show(f"Type.{name}{ask}")
for text in (
    "Type(np.float32)", "Type(np.int64)", "Type('U')", "Type(bool)", "Type(np.complex64)", "Type.dynamic.is_dynamic()",
    "Type.f32 == Type(np.float32)", "Type.f32 == Type.f64", "Type.dynamic.to_dtype()",
):  # fmt: skip
    show(text)

for dim in ("Dimension()", "Dimension(3)", "Dimension(2, 5)", "Dimension(2, -1)", "Dimension(-1)", "Dimension('2..7')",
            "Dimension('?')", "Dimension(0)", "Dimension.dynamic()"):  # fmt: skip
    show(dim)
    for ask in (".is_static", ".is_dynamic", ".get_length()", ".min_length", ".max_length", ".to_string()",
                ".compatible(Dimension(4))", ".compatible(Dimension(2))", ".compatible(Dimension(6, 9))", " == 3", " == Dimension(2, 5)",
                " == -1", " == 'x'"):  # fmt: skip
        show(f"{dim}{ask}")

BOUNDS = (".get_min_shape()", ".get_max_shape()")
for shape in ("PartialShape([1, 2, 3])", "PartialShape('?,3,1..8')", "PartialShape('[2,-1]')", "PartialShape([])",
              "PartialShape([-1, (2, 5), Dimension(4), '1..2'])", "PartialShape.dynamic()", "PartialShape.dynamic(2)",
              "PartialShape(PartialShape([7, -1]))", "PartialShape(Shape([4, 5]))", "PartialShape('a,b')"):  # fmt: skip
    show(shape)
    for ask in (".is_static", ".is_dynamic", ".rank", ".to_shape()", *(() if shape == "PartialShape.dynamic()" else BOUNDS),
                ".get_dimension(0)", ".compatible(PartialShape([1, 2, 3]))", ".compatible(PartialShape([2, 2]))", ".to_string()",
                "[0]", "[-1]", "[1:]", "[5]", " == PartialShape([1, 2, 3])", " == PartialShape('?,3,1..8')"):  # fmt: skip
        show(f"{shape}{ask}")
    show(f"len({shape})")
    show(f"list({shape})")
shape = PartialShape([1, 2, 3])
shape[1] = 7
shape[2] = Dimension(1, 4)
copy = PartialShape(shape)
copy[0] = 9
show("shape")
show("copy")

for text in (
    "Shape([1, 2, 3])", "Shape()", "Shape([1, 2, 3])[1]", "Shape([1, 2, 3])[1:]", "Shape([1, 2]) == [1, 2]",
    "Shape([1, 2]) != (1, 2)", "Shape([1, 2]) == PartialShape([1, 2])", "Shape([1, 2]) == PartialShape([1, -1])",
    "Shape([1, 2]).to_string()", "list(Shape((4, 5)))", "len(Shape([1, 2]))", "Shape([1, 2]) == [1, 3]",
    *(f"PartialShape([1, 2]) {sign} {other}" for sign in ("==", "!=")
      for other in ("5", "1.5", "'1,2'", "None", "{1: 2}", "[1, 2]", "(1, 3)", "Shape([1, 2])")),
):  # fmt: skip
    show(text)

grid = np.arange(6, dtype=np.float32).reshape(2, 3)
bytes_of = np.array([1, 0, 2, 0, 3, 0], np.uint8)
wide = np.arange(12, dtype=np.int64).reshape(3, 4)
words = np.array(["a", "bcd"])
for made in ("Tensor(grid)", "Tensor(grid, shared_memory=True)", "Tensor(grid, True)", "Tensor(Type.i16, Shape([2, 2]))",
             "Tensor(Type.f32, [3])", "Tensor(np.int8, [2, 1])", "Tensor(wide[:, 1:3])", "Tensor([1, 2, 3])",
             "Tensor([1.5, 2])", "Tensor([[True], [False]])", "Tensor(bytes_of, Shape([3]), Type.i16)",
             "Tensor(wide[:, 1:3], shared_memory=True)", "Tensor(words)", "Tensor(Type.string, [2])", "Tensor(['x', 'yz'])",
             "Tensor(Type.bf16, [2])", "Tensor(grid.T)", "Tensor(5)"):  # fmt: skip
    for ask in ("", ".shape", ".size", ".element_type", ".get_element_type()", ".get_shape()", ".get_size()",
                ".is_continuous()"):  # fmt: skip
        show(f"{made}{ask}")
    if "string" not in made and "words" not in made and "'x'" not in made:
        for ask in (".byte_size", ".get_byte_size()", ".data.dtype"):
            show(f"{made}{ask}")
        show(f"list({made}.strides)")
        show(f"list({made}.get_strides())")
    if ("Type" not in made and "np.int8" not in made) or "bytes_of" in made:
        show(f"{made}.data")
for text in ("Tensor(words).str_data", "Tensor(words).bytes_data", "Tensor(words).data", "Tensor(grid).str_data",
             "Tensor(grid).bytes_data"):  # fmt: skip
    show(text)
tensor, other, named = Tensor(grid), Tensor(Type.f32, [1]), Tensor(words)
named.str_data = np.array(["longer", "w"])
show("named.str_data")
tensor.copy_to(other)
show("other.data")
other.shape = [3, 2]
show("other.data")
other.data[:] = 4
tensor.copy_from(other)
show("tensor.data")
shared, own = Tensor(grid, shared_memory=True), Tensor(grid)
grid[0, 0] = 50
show("shared.data[0, 0]")
show("own.data[0, 0]")

core = Core()
model = core.read_model(model_path)
compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
request = compiled.create_infer_request()
taken, left, other_left = Tensor(Type.f32, [3]), Tensor(Type.f32, [2]), Tensor(Type.f32, [2])
a, b = np.array([1, 2], np.float32), np.array([10, 20, 30], np.float32)
for text in (
    "model.friendly_name", "model.get_friendly_name()", "model.is_dynamic()", "model.dynamic", "len(model.get_ops())",
    "sorted(op.get_type_name() for op in model.get_ops())", "[op.get_type_name() for op in model.get_ordered_ops()][-1]",
    "[p.get_friendly_name() for p in model.get_parameters()]", "[p.friendly_name for p in model.parameters]",
    "len(model.get_results())", "len(model.results)", "model.input()", "model.input(2)",
    "model.input('a').any_name", "model.input('none')", "model.output()", "model.output(1).any_name", "model.output('less').names",
    "model.output('less').get_names()", "model.input(0).node.get_type_name()",
    "model.input(0).node.friendly_name", "model.input(0).get_index()", "model.input(0).index", "model.input(0).get_any_name()",
    "model.input(1).get_partial_shape()", "model.input(1).get_shape()", "model.input(0).get_element_type()",
    "model.input(0).element_type", "model.input(0) == model.inputs[0]", "model.input(0) == model.input(1)",
    "model.input(0) == compiled.input(0)", "model.clone().friendly_name", "model.input(0).shape", "model.output(0).partial_shape",
    "len(compiled.inputs)", "len(compiled.outputs)", "compiled.output(1).names", "compiled.input('b').shape",
    "compiled({'a': a, 'b': b})[0]", "compiled([a, b])['less']", "compiled((a, b))[1]", "compiled({0: a, 1: b})[-1]",
    "compiled([a, b])[2]", "compiled([a, b])['none']", "compiled([a, b])[1.5]", "len(compiled([a, b]))",
    "compiled([a, b]).names()", "compiled([a, b]).to_tuple()[0]", "len(compiled([a, b]).to_dict())",
    "compiled(a)", "compiled([a])[0]", "compiled({'c': a})", "compiled({'more': a})", "compiled({1.5: a})", "compiled({2: a})",
    "compiled([b, a])", "compiled([a, object()])", "compiled([[1, 2], [1, 2, 3]])[0]", "compiled({'a': [3, 4], 'b': b})[0]",
    "compiled([np.array([1, 2], np.int32), b])[0]", "compiled([Tensor(a), Tensor(b)])[0]", "compiled([Tensor(wide), b])",
    "request.get_input_tensor()", "request.get_input_tensor(1).shape", "request.get_input_tensor(2)",
    "request.get_output_tensor(1).shape", "request.get_tensor('a').shape", "request.get_tensor('none')",
    "request.get_tensor('less').shape", "request.get_tensor(compiled.output(0)).shape",
    "request.set_input_tensor(0, Tensor(a))", "request.set_input_tensor(1, Tensor(b))", "request.infer()[0]",
    "request.set_input_tensor(0, Tensor(b))", "request.set_input_tensor(Tensor(a))", "request.set_input_tensor(0, a)",
    "request.set_tensor('a', Tensor(2 * a))", "request.infer()['less']", "request.set_tensor('a', Tensor(wide))",
    "request.set_tensor(compiled.input(1), Tensor(3 * b))", "request.infer()['more']",
    "request.set_input_tensors([Tensor(a), Tensor(a)])", "request.set_tensors({'a': Tensor(5 * a), 'b': Tensor(b)})", "request.infer()['less']",
    "request.set_output_tensor(0, taken)", "request.infer([a, b]) and None", "taken.data", "request.output_tensors[0].data",
    "request.set_output_tensor(0, Tensor(a))", "request.set_output_tensors({1: left})", "request.infer([a, b]) and None", "left.data",
    "request.set_tensor('less', other_left)", "request.infer([2 * a, b]) and None", "other_left.data", "left.data",
    "[t.shape for t in request.input_tensors]", "[p.any_name for p in request.model_inputs]",
    "[p.any_name for p in request.model_outputs]", "request.results['less']", "request.wait_for(1000)", "request.latency > 0",
    "request.get_compiled_model().input(0) == compiled.input(0)", "request.infer(a)",
    "compiled.query_state()", "request.query_state()", "len(AsyncInferQueue(compiled, 3))",
    "[r.userdata for r in AsyncInferQueue(compiled, 2)]", "AsyncInferQueue(compiled, 2).is_ready()",
    "AsyncInferQueue(compiled, 2)[1].get_input_tensor(0).shape", "AsyncInferQueue(compiled, 2).get_idle_request_id()",
    "compiled.get_property('NETWORK_NAME')", "core.read_model(b'<net')", "core.read_model('none.xml')",
):  # fmt: skip
    show(text)

# share_inputs takes the array itself, share_outputs gives the memory of the request
request = compiled.create_infer_request()
mine = a.copy()
results = request.infer([mine, b], share_inputs=True, share_outputs=True)
mine[0] = 100
show("request.infer()['less']")
show("results['less']")
kept = request.infer([a, b])["less"]
request.infer([5 * a, b])
show("kept")

# without share_inputs, what an array holds later does not count
passed = a.copy()
request.infer([passed, b])
passed[0] = 100
show("request.infer()['less']")
request.start_async([passed, b])
request.wait()
passed[0] = 200
show("request.infer()['less']")
np.savez(out_path, less=compiled([a, b])["less"], more=compiled([a, b])["more"])
