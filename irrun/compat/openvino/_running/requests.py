"""Compiled models, and the requests that run them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import irrun.api as api
from irrun.compat.openvino._building.nodes import LayerNode
from irrun.compat.openvino._errors import Covered, OpenVINOError, translated
from irrun.compat.openvino._models import Model
from irrun.compat.openvino._ports import ConstOutput, Port, Ports, position_in, printed
from irrun.compat.openvino._properties import Properties
from irrun.compat.openvino._running.feeds import fitting, input_tensor, keyed
from irrun.compat.openvino._running.profiling import ProfilingInfo, Stopwatch
from irrun.compat.openvino._running.results import OVDict
from irrun.compat.openvino._running.states import VariableState, has_variables, variable_states
from irrun.compat.openvino._tensors import Tensor
from irrun.compat.openvino._types import STRING
from irrun.diagnostics import IrrunError
from irrun.running.executor import Executable

__all__ = ["CompiledModel", "InferRequest"]


class CompiledModel(Ports):
    """A model ready to run. All calls of the object use the same InferRequest."""

    def __init__(self, model: Model, properties: Properties | None = None) -> None:
        self._properties = properties or Properties()
        self._executable, self._name = model._executable, model.friendly_name
        self._take_ports(self._executable, ConstOutput)
        self._request: InferRequest | None = None

    def create_infer_request(self) -> InferRequest:
        return InferRequest(self)

    def infer_new_request(self, inputs: Any = None) -> OVDict:
        return self.create_infer_request().infer(inputs)

    def __call__(
        self, inputs: Any = None, share_inputs: bool = True, share_outputs: bool = False, *, decode_strings: bool = True
    ) -> OVDict:
        return self._own_request().infer(inputs, share_inputs, share_outputs, decode_strings=decode_strings)

    def query_state(self) -> list[VariableState]:
        return self._own_request().query_state()

    def reset_state(self) -> None:
        self._own_request().reset_state()

    def release_memory(self) -> None:
        pass

    def get_property(self, name: str) -> Any:
        return self._properties.get(name, NETWORK_NAME=self._name)

    def set_property(self, *args: Any) -> None:
        self._properties.update(args[-1] if isinstance(args[-1], Mapping) else [args[-1]])

    def get_runtime_model(self) -> Model:
        return Model(self._executable.model)

    def _own_request(self) -> InferRequest:
        if self._request is None:
            self._request = self.create_infer_request()
        return self._request

    def _executable_for_request(self) -> Executable:
        """Return the Executable for a request. If the model has state, each request gets its own."""
        return api.compile(self._executable.model) if has_variables(self._executable) else self._executable


class InferRequest(Covered):
    """Runs a CompiledModel. A request has its own input tensors, output tensors and state."""

    userdata: Any = None
    latency: float = 0.0

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self._executable = compiled._executable_for_request()
        self._callback: Callable[[Any], None] | None = None
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        self._stopwatch = Stopwatch()
        self._freed: Callable[[], None] = lambda: None
        self.model_inputs, self.model_outputs = compiled.inputs, compiled.outputs
        self.input_tensors, self.output_tensors = (
            [Tensor(p.element_type, [d.lo for d in p._shape.dims or ()]) for p in ports]
            for ports in (self.model_inputs, self.model_outputs)
        )

    # -- tensors

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        return self.input_tensors[_position(self.model_inputs, index)]

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        return self.output_tensors[_position(self.model_outputs, index)]

    def set_input_tensor(self, *args: Any) -> None:
        _set(self.model_inputs, self.input_tensors, *args)

    def set_output_tensor(self, *args: Any) -> None:
        _set(self.model_outputs, self.output_tensors, *args)

    def set_input_tensors(self, tensors: Any) -> None:
        _set_all(self.model_inputs, self.input_tensors, tensors)

    def set_output_tensors(self, tensors: Any) -> None:
        _set_all(self.model_outputs, self.output_tensors, tensors)

    def get_tensor(self, key: str | ConstOutput) -> Tensor:
        tensors, index = self._place(key)
        return tensors[index]

    def set_tensor(self, key: str | ConstOutput, tensor: Tensor) -> None:
        tensors, index = self._place(key)
        ports = self.model_inputs if tensors is self.input_tensors else self.model_outputs
        _set(ports, tensors, index, tensor)

    def set_tensors(self, tensors: Mapping[Any, Tensor]) -> None:
        for key, tensor in tensors.items():
            self.set_tensor(key, tensor)

    def _place(self, key: Any) -> tuple[list[Tensor], int]:
        """Return the list of tensors that holds the tensor of a port, and its position there."""
        if not isinstance(key, (str, Port)):
            raise TypeError(f"a tensor is found by its port or name, not by {key!r}")
        for ports, tensors in ((self.model_inputs, self.input_tensors), (self.model_outputs, self.output_tensors)):
            for index, port in enumerate(ports):
                if key in port._names if isinstance(key, str) else key == port:
                    return tensors, index
        raise OpenVINOError(f"the model has no port {key!r}")

    # -- runs

    def infer(
        self,
        inputs: Any = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
    ) -> OVDict:
        self._require_idle()
        self._feed(inputs, share_inputs)
        self._run()
        return self._results(share_outputs, decode_strings)

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Run the model and call the callback in another thread. ``wait`` raises an exception of either."""
        self._require_idle()
        self._feed(inputs, share_inputs)
        if userdata is not None:
            self.userdata = userdata
        self._failure = None
        self._thread = threading.Thread(target=self._run_and_call, name="irrun-request", daemon=True)
        self._thread.start()

    def _run_and_call(self) -> None:
        try:
            self._run()
            if self._callback is not None:
                self._callback(self.userdata)
        except Exception as error:
            is_ours = isinstance(error, OpenVINOError)
            self._failure = error if is_ours else OpenVINOError(f"the callback raised {error!r}")
        finally:
            self._freed()

    def _require_idle(self) -> None:
        """Raise OpenVINOError if a run is under way, unless it is this thread's: the callback may use the request."""
        thread = self._thread
        if thread is not None and thread.is_alive() and thread is not threading.current_thread():
            raise OpenVINOError("Infer Request is busy; call wait first")

    def wait(self) -> None:
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def wait_for(self, timeout: int) -> bool:
        """Wait at most ``timeout`` milliseconds. Return whether the run is complete."""
        if self._thread is not None:
            self._thread.join(timeout / 1000)
            if self._thread.is_alive():
                return False
        self.wait()
        return True

    def cancel(self) -> None:
        pass

    def set_callback(self, callback: Callable[[Any], None], userdata: Any = None) -> None:
        if not callable(callback):
            raise TypeError(f"a callback is a function, not {type(callback).__name__}")
        self._callback, self.userdata = callback, userdata

    @property
    def results(self) -> OVDict:
        return self._results(share=True, decode=True)

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """Return the time of each layer in the last run: 0 unless the model was compiled with ``PERF_COUNT``."""
        graph = self._executable.model
        layers = [graph.layers[id] for id in graph.order]
        return self._stopwatch.infos([(layer, LayerNode(self._executable, layer).get_type_name()) for layer in layers])

    profiling_info = property(get_profiling_info)

    def __repr__(self) -> str:
        return printed("InferRequest:", self.model_inputs, self.model_outputs)

    def get_compiled_model(self) -> CompiledModel:
        return self._compiled

    # -- state

    def query_state(self) -> list[VariableState]:
        return variable_states(self._executable)

    def reset_state(self) -> None:
        self._executable.reset_state()

    # --

    def _feed(self, inputs: Any, share: bool) -> None:
        """Set the input tensors to the values that a run was called with. ``share`` avoids copies if possible."""
        for key, value in keyed(inputs, self.model_inputs).items():
            if isinstance(key, int):
                index = _position(self.model_inputs, key)
            else:
                tensors, index = self._place(key)
                if tensors is not self.input_tensors:
                    raise OpenVINOError(f"{key!r} is an output of the model, not an input")
            tensor = self.input_tensors[index]
            self.input_tensors[index] = input_tensor(self.model_inputs[index], index, value, tensor, share)

    def _run(self) -> None:
        start = time.perf_counter()
        try:
            feeds = {i: _array(p, t) for i, (p, t) in enumerate(zip(self.model_inputs, self.input_tensors))}
            hooks = [self._stopwatch] if self._compiled._properties.profiles else []
            outputs = self._executable(feeds, hooks=hooks)
        except IrrunError as error:
            raise translated(error) from error
        for tensor, array in zip(self.output_tensors, outputs.arrays):
            tensor._write(array)
        self.latency = (time.perf_counter() - start) * 1000

    def _results(self, share: bool, decode: bool) -> OVDict:
        arrays: dict[ConstOutput, np.ndarray] = {}
        for port, tensor in zip(self.model_outputs, self.output_tensors):
            if tensor.element_type is STRING:
                arrays[port] = tensor.str_data.copy() if decode else tensor.bytes_data
            else:
                arrays[port] = tensor.data if share else tensor.data.copy()
        return OVDict(arrays)


def _position(ports: Sequence[Port], index: int | None) -> int:
    """Return a valid position among ``ports``; without an index, that of the only port."""
    if index is None:
        if len(ports) != 1:
            raise OpenVINOError(f"there are {len(ports)} tensors; choose one by its position")
        return 0
    position = position_in(index)
    if position >= len(ports):
        raise OpenVINOError(f"there are {len(ports)} tensors, so there is none at position {position}")
    return position


def _set(ports: Sequence[Port], tensors: list[Tensor], *args: Any) -> None:
    """Replace the tensor of a port. ``args`` are the position of the port, unless it is the only one, and a Tensor."""
    *index, tensor = args
    position = _position(ports, *(index or [None]))
    tensors[position] = fitting(ports[position], tensor)


def _set_all(ports: Sequence[Port], tensors: list[Tensor], replacements: Any) -> None:
    """Replace the tensors of ports by those in a sequence, or in a mapping by position."""
    if not replacements:
        raise OpenVINOError("there are no tensors to set; pass one for each port to change")
    pairs = replacements.items() if isinstance(replacements, Mapping) else enumerate(replacements)
    for index, tensor in pairs:
        _set(ports, tensors, index, tensor)


def _array(port: Port, tensor: Tensor) -> np.ndarray:
    """Return the array that the model reads for an input, in the type that the input has within the model."""
    array = tensor._array()
    return array if port._inner_type is port._type._own else array.astype(port._inner_type.dtype)
