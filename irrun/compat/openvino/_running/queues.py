"""A pool of requests."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from irrun.compat.openvino._errors import Covered
from irrun.compat.openvino._ports import position_in
from irrun.compat.openvino._running.requests import CompiledModel, InferRequest

__all__ = ["AsyncInferQueue"]


class AsyncInferQueue(Covered):
    """A pool of requests, each of which runs in a thread of its own. A job waits until one of them is idle."""

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        if not isinstance(model, CompiledModel) or jobs < 0:
            raise TypeError("an AsyncInferQueue takes a CompiledModel and a number of jobs from 0 on")
        count = jobs or model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        self._requests = [model.create_infer_request() for _ in range(count)]
        self._callback: Callable[[InferRequest, Any], None] | None = None
        self._idle = deque(range(count))
        self._changed = threading.Condition()
        for number, request in enumerate(self._requests):
            request._freed = lambda number=number: self._free(number)
            request.set_callback(lambda data, request=request: self._callback and self._callback(request, data))

    def set_callback(self, callback: Callable[[InferRequest, Any], None]) -> None:
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Start a run in the first idle request; wait for one if all are busy. Raises what an earlier run raised."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            number = self._idle.popleft()
        request = self._requests[number]
        try:
            if request._thread is not None:
                request.wait()  # its thread has called _free and ends now
            request.userdata = userdata
            request.start_async(inputs, userdata, share_inputs)
        except BaseException:
            self._free(number)
            raise

    def _free(self, number: int) -> None:
        with self._changed:
            self._idle.append(number)
            self._changed.notify_all()

    def wait_all(self) -> None:
        """Wait for all runs. Raises the first of their errors."""
        errors: list[Exception] = []
        for request in self._requests:
            try:
                request.wait()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def is_ready(self) -> bool:
        """Return whether a request is idle."""
        return bool(self._idle)

    def get_idle_request_id(self) -> int:
        """Wait until a request is idle, and return its number: ``start_async`` takes this request next."""
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            return self._idle[0]

    userdata = property(lambda self: [request.userdata for request in self._requests])

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[position_in(index)]
