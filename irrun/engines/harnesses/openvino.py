"""The harness of OpenVINO: any version, on any of its devices, or the reference kernels of its core, which it calls
``evaluate``. It needs openvino and numpy, and no irrun.

Inner values are observed by adding Results to copies of the model, which changes how OpenVINO fuses layers. A model
that is loaded with its inner values is therefore compiled as it is only if a run observes none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # it would open connections and fork

import numpy as np
import openvino as ov

try:
    from openvino import opset8
except ImportError:  # before 2025
    from openvino.runtime import opset8  # type: ignore[import-not-found, no-redef]

    ov = ov if hasattr(ov, "Core") else importlib.import_module("openvino.runtime")  # before 2023.1

__all__ = ["Harness"]

_MAX_UNSIZED_VALUES = 64
"""The most inner values of unknown size that one copy of the model computes."""
_MIN_COPY_BYTES = 1 << 25
"""Bytes of inner values that one copy of the model may compute, whatever the size of the model."""
_HINT = "INFERENCE_PRECISION_HINT"
_PRECISE = (_HINT, "KV_CACHE_PRECISION", "DYNAMIC_QUANTIZATION_GROUP_SIZE", "EXECUTION_MODE_HINT")
"""The properties that decide in which precision a device computes."""
_TRANSFORMS: dict[str, tuple[str, dict[str, bool]]] = {
    "paged": ("paged_attention_transformation", {}),
    "stateless": ("stateful_to_stateless_transformation", {}),
    "low-latency": ("apply_low_latency_transformation", {"use_const_initializer": True}),
    "moc": ("apply_moc_transformations", {"cf": False}),
}
"""The functions of ``openvino._offline_transformations``, each with its keyword arguments, by the option's value."""
_SILENT = ("Parameter", "Constant", "Result", "Assign")
"""Types of layers that compute no value."""


class Harness:
    """OpenVINO, with the device and the properties that ``options`` name, or with the kernels of its core.

    ``properties`` are those in effect that decide what a model computes, as the device shows them.
    """

    repeats = True
    """Whether each copy of a model also shows the values that its layers read from other copies."""

    def __init__(self, options: dict[str, str]) -> None:
        self.core = ov.Core()
        self.evaluates = "evaluate" in options
        self.weights = options.get("weights", "")
        self.transform = options.get("transform", "")
        self.device = options.get("device", "CPU")
        self.asked: dict[str, str] = json.loads(options.get("properties", "{}"))
        given = json.loads(options.get("given", "[]"))
        self.properties: dict[str, str] = {}
        how = "evaluate"
        if not self.evaluates:
            self._ask_for(given)
            try:
                self.properties = self._in_effect(self._small())
            except RuntimeError as error:
                raise ValueError([line for line in str(error).splitlines() if line][-1]) from None
            how = " ".join(filter(None, (self.device, self.properties.get(_HINT, ""), self.transform)))
        self.name = f"OpenVINO {ov.__version__.split('-')[0]} {how}".strip().replace("dynamic", "f32")  # by ACCURACY

    def _ask_for(self, given: Sequence[str]) -> None:
        """Leave out properties that this version or device lacks, unless the user has named them."""
        for name in [name for name in self.asked if name not in given]:
            value = self.asked.pop(name)
            with suppress(RuntimeError):
                self._small({name: value})
                self.asked[name] = value

    def _small(self, asked: dict[str, str] | None = None) -> Any:
        """Return a compiled model of one layer, which shows the properties in effect."""
        x = opset8.parameter([1], np.float32)
        model: Any = ov.Model  # its stub lacks this signature
        small = model([opset8.result(opset8.relu(x))], [x], "small")
        return self.core.compile_model(small, self.device, self.asked if asked is None else asked)

    def _in_effect(self, compiled: Any) -> dict[str, str]:
        """Return the properties that decide what a compiled model computes, and those that the user has asked for."""
        found = {}
        for name in (*_PRECISE, *self.asked):
            with suppress(RuntimeError, TypeError):  # the device has no such property, or does not show it
                found[name] = _text(compiled.get_property(name))
        return found

    def load(self, path: str, inner: bool) -> dict[str, Any]:
        """Read the model, and return its inputs, its outputs and, if ``inner``, its inner values; else compile it."""
        self.request: Any = None  # free its memory first
        self.observers: dict[Any, list[Any]] = {}
        self.unseen: list[tuple[str, int]] = []
        self.path = path
        model = self._model()
        self.has_state = _has_state(model)
        if not inner:
            self.request = self._request(model)
        loaded: dict[str, Any] = {
            "inputs": [
                {"names": _names(port), "type": _type(port), "shape": str(port.get_partial_shape())}
                for port in model.inputs
            ],
            "outputs": [{"names": _names(port)} for port in model.outputs],
        }
        if inner:
            loaded["values"] = [_value(node, port) for node, port in _values(model)]
        return loaded

    def infer(
        self, feeds: Sequence[Any], taps: Sequence[tuple[str, int]], show: Callable[..., None], repeat: bool = False
    ) -> list[Any]:
        """Return the outputs, and pass the inner values at ``taps`` to ``show``, each with the number of its copy.

        With ``repeat``, also pass those that the layers of a copy read from other copies.
        """
        tensors = [self._tensor(*feed) for feed in feeds]
        if not taps:
            if self.request is None:
                self.request = self._request(self._model())
            _run(self.request, tensors)
            return [self._contents(self.request.get_output_tensor(i)) for i in range(len(self.request.model_outputs))]
        if not self.has_state:
            self.request = None  # it would take as much memory as a copy
        outputs: list[Any] = []
        for copy, (request, batch) in enumerate(self._observers(tuple(taps), repeat, tensors)):
            first = len(request.model_outputs) - len(batch)
            for position, ((layer, port), is_repeated) in enumerate(batch.items(), first):
                show(layer, port, self._contents(request.get_output_tensor(position)), copy, is_repeated)
            outputs = outputs or [self._contents(request.get_output_tensor(position)) for position in range(first)]
            del request  # before the next copy is made
        return outputs

    def runtime(self, feeds: Sequence[Any], runs: int) -> dict[str, Any]:
        """Return the nodes that the device runs, and the properties in effect.

        Each node has its times in ``runs`` runs, after a first one that prepares the others.
        """
        if self.evaluates:
            raise NotImplementedError(f"{self.name} shows no runtime graph: the core runs the layers as they are")
        runtime = _beside("openvino_runtime")
        self.request = None  # free its memory first
        compiled = self.core.compile_model(self._model(), self.device, {**self.asked, "PERF_COUNT": "YES"})
        request, tensors = compiled.create_infer_request(), [self._tensor(*feed) for feed in feeds]
        times: list[dict[str, float]] = []
        before: dict[str, float] = {}
        for number in range(1, runs + 2):
            for state in request.query_state():
                state.reset()
            _run(request, tensors)
            shown = runtime.times(request)
            if self.device.startswith("CPU"):  # it shows the average over all runs so far, in whole microseconds
                total = {name: time * number for name, time in shown.items()}
                shown = {name: max(0.0, time - before.get(name, 0.0)) for name, time in total.items()}
                before = total
            times.append(shown)
        return {"nodes": runtime.nodes(compiled, times[1:]), "properties": self._in_effect(compiled)}

    def save(self, path: str) -> None:
        """Write the model as the transformation has rewritten it, with constants of the types that they have."""
        ov.save_model(self._model(), path, compress_to_fp16=False)

    def reset(self) -> None:
        """Reset the variables of the model and of its copies."""
        for request in (self.request, *(request for rows in self.observers.values() for request, _ in rows)):
            for state in request.query_state() if request is not None else ():
                state.reset()

    @cached_property
    def _strings(self) -> _Strings:
        return _Strings(self.core)

    def _tensor(self, type_name: str, shape: tuple[int, ...], contents: Any) -> Any:
        """Return a tensor of OpenVINO. ``contents`` are uint8 [n], or a list of strings."""
        return self._strings.tensor(contents, shape) if type_name == "string" else _tensor(type_name, shape, contents)

    def _contents(self, tensor: Any) -> Any:
        """Return a copy of a tensor: its type, its shape, and uint8 [n] or a list of strings."""
        if tensor.get_element_type().get_type_name() == "string":
            return "string", tuple(tensor.get_shape()), self._strings.words(tensor)
        return _contents(tensor)

    def _model(self) -> Any:
        """Return the model as the file has it, or rewritten by the transformation that the options name."""
        model = self.core.read_model(self.path, self.weights) if self.weights else self.core.read_model(self.path)
        if self.transform:
            from openvino import _offline_transformations as offline  # versions before 2024 lack some of them

            getattr(offline, _TRANSFORMS[self.transform][0])(model, **_TRANSFORMS[self.transform][1])
        return model

    def _request(self, model: Any) -> Any:
        if self.evaluates:
            return _Evaluation(model)
        return self.core.compile_model(model, self.device, self.asked).create_infer_request()

    def _observers(self, taps: tuple[tuple[str, int], ...], repeat: bool, tensors: Sequence[Any]) -> Iterator[Any]:
        """Run copies of the model that compute the values at ``taps``, and yield each with the taps of its own.

        A device may refuse a copy although it runs the model: then two copies share the taps, and so on. What a copy
        with a single tap does not show is ``unseen``.

        A tap that is there only because the copy reads it is True (with ``repeat``).

        The copies of a model with state are kept, each with its own state, and so is a single copy. Other copies exist
        one at a time, so that they do not fill the memory.
        """
        key = taps, repeat
        if key in self.observers:
            for request, batch in self.observers[key]:
                _run(request, tensors)
                yield request, batch
            return
        kept = self.observers[key] = []
        batches = self._batches(set(taps))
        is_single = len(batches) == 1
        while batches:
            own = batches.pop(0)
            read = self._read(own, set(taps).difference(self.unseen)) if repeat else []
            batch = {**dict.fromkeys(read, True), **dict.fromkeys(own, False)}
            try:
                request = self._observer(batch)
                _run(request, tensors)
            except RuntimeError:
                if not self._runs(tensors):
                    raise
                half = len(own) // 2
                batches[:0] = [part for part in (own[:half], own[half:]) if half]
                self.unseen += [] if half else own
                continue
            observer = request, batch
            if self.has_state or is_single:
                kept.append(observer)
            yield observer
            del observer, request
        if not kept:
            del self.observers[key]

    def _runs(self, tensors: Sequence[Any]) -> bool:
        """Return whether the device runs the model as it is."""
        try:
            _run(self._request(self._model()), tensors)
        except RuntimeError:
            return False
        return True

    def _read(self, batch: Collection[tuple[str, int]], taps: Collection[tuple[str, int]]) -> list[tuple[str, int]]:
        """Return the taps that are no part of a batch, and that its layers read."""
        layers = {layer for layer, _ in batch}
        nodes = [node for node in self._model().get_ordered_ops() if node.get_friendly_name() in layers]
        sources = (value.get_source_output() for node in nodes for value in node.inputs())
        read = ((source.get_node().get_friendly_name(), source.get_index()) for source in sources)
        return [tap for tap in dict.fromkeys(read) if tap in taps and tap not in batch]

    def _batches(self, taps: set[tuple[str, int]]) -> list[list[tuple[str, int]]]:
        """Return the taps in the order of the model, in lists that one copy of the model can compute.

        The values of a copy exist at the same time. They may take a third of the bytes of the model's constants.
        """
        model = self._model()
        constants = (node.output(0) for node in model.get_ops() if node.get_type_name() == "Constant")
        most = max(_MIN_COPY_BYTES, sum(map(_size, constants)) // 3)
        batches: list[list[tuple[str, int]]] = []
        room = 0
        for node, port in _values(model):
            tap = node.get_friendly_name(), port
            if tap not in taps:
                continue
            size = _size(node.output(port)) or most // _MAX_UNSIZED_VALUES
            if not batches or size > room:
                batches.append([])
                room = most
            batches[-1].append(tap)
            room -= size
        return batches

    def _observer(self, batch: Collection[tuple[str, int]]) -> Any:
        """Return a request of a copy of the model in which the values at ``batch`` are further outputs, the last."""
        model = self._model()
        nodes = {(node.get_friendly_name(), port): node for node, port in _values(model)}
        model.add_results([opset8.result(nodes[tap].output(tap[1])) for tap in batch])
        return self._request(model)


class _Evaluation:
    """Runs a model with the reference kernels of OpenVINO's core, behind the methods of a request."""

    def __init__(self, model: Any) -> None:
        if _has_state(model):
            raise NotImplementedError("evaluate keeps no state")
        self.model, self.model_outputs = model, model.outputs
        self.inputs: dict[int, Any] = {}
        self.outputs: list[Any] = []

    def set_input_tensor(self, position: int, tensor: Any) -> None:
        self.inputs[position] = tensor

    def infer(self) -> None:
        """Run the model. Raises NotImplementedError if a layer has no evaluate for these types."""
        self.outputs = [ov.Tensor(port.get_element_type(), ov.Shape([0])) for port in self.model_outputs]
        inputs = [self.inputs[position] for position in range(len(self.inputs))]
        try:
            is_evaluated = self.model.evaluate(self.outputs, inputs)
        except RuntimeError as error:
            lacking = re.search(r"Evaluation failed on \S*?(\w+) ", str(error))
            if lacking is None:
                raise
            raise NotImplementedError(f"{lacking[1]} has no evaluate for these types") from None
        if not is_evaluated:  # before 2025
            raise NotImplementedError("a layer has no evaluate for these types")

    def get_output_tensor(self, position: int) -> Any:
        return self.outputs[position]

    def query_state(self) -> Sequence[Any]:
        return ()


class _Strings:
    """Converts string tensors of OpenVINO from and to bytes.

    Its Python API takes and returns them as fixed-width strings of numpy, which lose NULs at their ends. Models that
    pack and unpack strings lose nothing.
    """

    def __init__(self, core: Any) -> None:
        opset15 = importlib.import_module(
            opset8.__name__.replace("opset8", "opset15")
        )  # versions before 2024.5 lack it
        begins, ends = (opset15.parameter([-1], ov.Type.i32) for _ in range(2))
        symbols, strings = opset15.parameter([-1], ov.Type.u8), opset15.parameter([-1], ov.Type.string)
        pack = opset15.string_tensor_pack(begins, ends, symbols)
        unpack = opset15.string_tensor_unpack(strings)
        model: Any = ov.Model
        models = (
            model([opset8.result(pack.output(0))], [begins, ends, symbols], "pack"),
            model([opset8.result(port) for port in unpack.outputs()], [strings], "unpack"),
        )
        self.pack, self.unpack = (core.compile_model(model, "CPU").create_infer_request() for model in models)

    def tensor(self, words: Sequence[str], shape: Sequence[int]) -> Any:
        """Return a tensor of strings, in which surrogates stand for bytes that are not UTF-8."""
        tensor = ov.Tensor(ov.Type.string, ov.Shape([len(words)]))
        if words:
            parts = [word.encode("utf-8", "surrogateescape") for word in words]
            ends = np.cumsum([len(part) for part in parts]).astype(np.int32)
            begins = np.concatenate([[0], ends[:-1]]).astype(np.int32)
            symbols = np.frombuffer(b"".join(parts), np.uint8).copy()
            _run(self.pack, [ov.Tensor(array) for array in (begins, ends, symbols)])
            self.pack.get_output_tensor(0).copy_to(tensor)
        tensor.shape = list(shape)
        return tensor

    def words(self, tensor: Any) -> list[str]:
        """Return the strings of a tensor in C order."""
        if not tensor.get_size():
            return []
        flat = ov.Tensor(ov.Type.string, tensor.get_shape())
        tensor.copy_to(flat)
        flat.shape = [tensor.get_size()]
        _run(self.unpack, [flat])
        begins, ends, symbols = (self.unpack.get_output_tensor(position).data for position in range(3))
        data = symbols.tobytes()
        return [data[a:b].decode("utf-8", "surrogateescape") for a, b in zip(begins.tolist(), ends.tolist())]


def _beside(name: str) -> Any:
    """Load a module of this folder by its file. On `sys.path`, `openvino.py` would hide the package openvino."""
    spec = importlib.util.spec_from_file_location(f"irrun_{name}", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _names(port: Any) -> list[str]:
    """Return the names of an input or output: those of its tensor, and that of its layer."""
    return [*sorted(port.get_names()), port.get_node().get_friendly_name()]


def _text(value: Any) -> str:
    """Return the value of a property as a user would write it: bf16, u8, 32, PERFORMANCE."""
    return value.get_type_name() if isinstance(value, ov.Type) else str(getattr(value, "name", value))


def _size(port: Any) -> int:
    """Return the bytes of a value, or 0 if its shape or type is not known."""
    shape, element_type = port.get_partial_shape(), port.get_element_type()
    known = shape.is_static and element_type.is_static()
    return (int(np.prod(shape.to_shape(), dtype=object)) * element_type.bitwidth + 7) // 8 if known else 0


def _type(port: Any) -> str:
    return port.get_element_type().get_type_name()


def _has_state(model: Any) -> bool:
    return any(node.get_type_name() in ("ReadValue", "Assign") for node in model.get_ops())


def _values(model: Any) -> Iterator[tuple[Any, int]]:
    """Yield the node and position of each output that computes a value, in topological order."""
    for node in model.get_ordered_ops():
        if node.get_type_name() not in _SILENT:
            yield from ((node, port) for port in range(node.get_output_size()))


def _value(node: Any, port: int) -> dict[str, Any]:
    names = sorted(node.output(port).get_names())
    return {"layer": node.get_friendly_name(), "port": port, "type": node.get_type_name(), "names": names}


def _run(request: Any, tensors: Sequence[Any]) -> None:
    for position, tensor in enumerate(tensors):
        request.set_input_tensor(position, tensor)
    request.infer()


def _tensor(type_name: str, shape: tuple[int, ...], contents: Any) -> Any:
    """Return a tensor of OpenVINO of any type but string. ``contents`` are uint8 [n]."""
    element_type = getattr(ov.Type, type_name)
    if len(contents) and re.match(r"[ui][1-6]$|nf4|f4", type_name):
        return ov.Tensor(np.array(contents), ov.Shape(shape), element_type)
    tensor = ov.Tensor(element_type, ov.Shape(shape))  # its own memory: before 2025, it did not keep an array alive
    if len(contents):
        tensor.data.reshape(-1).view(np.uint8)[:] = contents
    return tensor


def _contents(tensor: Any) -> Any:
    """Return a copy of a tensor of any type but string: its type, its shape, and uint8 [n]."""
    element_type, shape = tensor.get_element_type(), tuple(tensor.get_shape())
    name = element_type.get_type_name()
    return name, shape, np.array(tensor.data).reshape(-1).view(np.uint8) if tensor.get_size() else b""
