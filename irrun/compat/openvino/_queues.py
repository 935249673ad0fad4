"""A pool of requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from irrun.compat.openvino._errors import Covered
from irrun.compat.openvino._ports import position_in
from irrun.compat.openvino._requests import CompiledModel, InferRequest

__all__ = ["AsyncInferQueue"]


class AsyncInferQueue(Covered):
    """A pool of requests. They take jobs in turn, and a job is complete when ``start_async`` returns."""

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        if not isinstance(model, CompiledModel) or jobs < 0:
            raise TypeError("an AsyncInferQueue takes a CompiledModel and a number of jobs from 0 on")
        self._requests = [model.create_infer_request() for _ in range(max(jobs, 1))]
        self._callback: Callable[[InferRequest, Any], None] | None = None
        self._next = 0

    def set_callback(self, callback: Callable[[InferRequest, Any], None]) -> None:
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        request = self._requests[self.get_idle_request_id()]
        self._next = (self._next + 1) % len(self)
        request.userdata = userdata
        request.set_callback(lambda data: self._callback and self._callback(request, data), userdata)
        request.start_async(inputs, userdata, share_inputs)

    def wait_all(self) -> None:
        for request in self._requests:
            request.wait()

    def is_ready(self) -> bool:
        return True

    def get_idle_request_id(self) -> int:
        return self._next

    userdata = property(lambda self: [request.userdata for request in self._requests])

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[position_in(index)]
