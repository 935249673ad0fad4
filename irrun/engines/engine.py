"""Engines: everything that runs a model, behind one protocol, so that a crash or a hang is a result."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from irrun.engines.execution import RuntimeGraph
from irrun.engines.folder import private_folder
from irrun.engines.outcomes import VERSION, Crash, Failure, Input, Loaded, Origin, Output, Outputs, Place, Refusal
from irrun.engines.process import Failed, Limits, Process
from irrun.engines.tensors import converted
from irrun.engines.values import Value, read_tensor, write_tensor

__all__ = ["ChildEngine", "Engine", "NotStartedError"]


class Engine(Protocol):
    """Something that runs models. Its methods return outcomes and raise no exception for a model that fails.

    ``name`` describes the engine with its version, such as ``OpenVINO 2026.4.1 CPU f32``. ``properties`` are those in
    effect that decide what it computes (``{"KV_CACHE_PRECISION": "u8"}``), as far as the engine shows them.
    """

    name: str
    properties: Mapping[str, str]

    def load(self, path: str | os.PathLike[str] | None = None, *, inner: bool = False) -> Loaded | Failure:
        """Load a model, by default that of the side, and return its interface. ``inner`` asks for its inner values."""
        ...

    def infer(
        self,
        feeds: Mapping[Any, np.ndarray],
        taps: Sequence[Place] = (),
        on_value: Callable[[Value], None] | None = None,
        on_repeated: Callable[[Value], None] | None = None,
    ) -> Outputs | Failure:
        """Run the model that was loaded last, and return its outputs.

        ``feeds`` are the inputs by name or position. ``on_value`` receives the inner values at ``taps`` as soon as they
        are computed; a layer in the body of a loop gives one in each iteration. The model must have been loaded with
        ``inner`` for that; then the outputs, too, may be those of a model that computes each layer on its own (see
        ``Loaded.neutral``). The state of a model is kept from run to run. After a crash or a timeout, the next run
        starts the engine again and loads the model. An engine that computes inner values in several copies of the model
        passes to ``on_repeated``, for each copy, the values that its layers read from other copies.
        """
        ...

    def runtime(self, feeds: Mapping[Any, np.ndarray], runs: int = 1) -> RuntimeGraph | Failure:
        """Return the graph that the engine runs for the model that was loaded last, with the times of ``runs`` runs.

        Each run begins with the initial state. The times do not count a first run, which prepares the others.
        """
        ...

    def save(self, path: str | os.PathLike[str]) -> Failure | None:
        """Write the model that was loaded last as the engine has rewritten it, and return None unless that fails."""
        ...

    def reset(self) -> Failure | None:
        """Reset the state of the model, and return None unless that fails."""
        ...

    def release(self) -> None:
        """Free the memory of the engine: its process and its model. The next ``load`` starts it again."""
        ...


class ChildEngine:
    """An engine in a process of its own. ``command`` starts its harness, to which ``options`` are passed.

    A harness that is not part of irrun is used through this class.
    """

    def __init__(
        self,
        command: Sequence[str],
        options: Mapping[str, str] | None = None,
        path: str | os.PathLike[str] | None = None,
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        session: Path | None = None,
    ) -> None:
        self.name = Path(command[-1]).stem
        self.properties: Mapping[str, str] = {}
        self.command, self.options, self.limits = list(command), dict(options or {}), limits or Limits()
        self.environment, self.session = environment, session
        self.path = path
        self.restarts = -1
        self._process: Process | None = None
        self._open = ExitStack()
        self._loaded: Loaded | None = None
        self._inner = False

    def start(self) -> None:
        """Start the process, unless it is running. Raises NotStartedError."""
        if self._process is not None and self._process.is_running:
            return
        self.release()
        if self.session is None:
            self.session = self._open.enter_context(private_folder())
        try:
            self._process = process = Process(self.command, self.limits, self.session, self.environment)
        except OSError as error:
            raise NotStartedError(Crash((error.strerror or str(error)).lower())) from None
        try:
            folders = {"folder": str(process.folder), "session": str(self.session)}
            asked: dict[str, Any] = {"version": VERSION, "options": self.options, **folders}
            answer = self._ask("start", **asked)
        except Failed as failed:
            raise NotStartedError(failed.outcome) from None
        self.name = str(answer.get("name", self.name))
        self.properties = {str(name): str(value) for name, value in dict(answer.get("properties", {})).items()}
        self.restarts += 1

    def close(self) -> None:
        """End the process and remove its files. The engine cannot be used again."""
        self.release()
        self._open.close()

    def release(self) -> None:
        """See ``Engine.release``."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def load(self, path: str | os.PathLike[str] | None = None, *, inner: bool = False) -> Loaded | Failure:
        """See ``Engine.load``."""
        if path is not None:
            self.path = path
        self._loaded, self._inner = None, inner
        if self.path is None:
            return Refusal("no model was passed")
        try:
            self.start()
            self._loaded = _loaded(self._ask("load", model=os.path.abspath(self.path), inner=inner))
        except (Failed, NotStartedError) as failed:
            return failed.outcome
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Crash(f"it broke the protocol: its answer to load is wrong: {error}")
        return self._loaded

    def infer(
        self,
        feeds: Mapping[Any, np.ndarray],
        taps: Sequence[Place] = (),
        on_value: Callable[[Value], None] | None = None,
        on_repeated: Callable[[Value], None] | None = None,
    ) -> Outputs | Failure:
        """See ``Engine.infer``."""
        loaded = self._running()
        if not isinstance(loaded, Loaded):
            return loaded
        if unknown := next((place for place in taps if place not in loaded.places), None):
            return Refusal(f'the model shows no inner value "{unknown}"; load it with inner=True to list them')
        began = time.monotonic()
        try:
            with self._sent(loaded, feeds) as inputs:
                wanted = [[place.layer, place.port] for place in taps]
                answer = self._ask(
                    "infer", on_value, on_repeated, inputs=inputs, taps=wanted, repeat=on_repeated is not None
                )
        except Failed as failed:
            return failed.outcome
        except ValueError as error:
            return Refusal(str(error))
        try:
            arrays = [(record["type"], read_tensor(record, remove=True)) for record in answer["outputs"]]
            if len(arrays) != len(loaded.outputs):
                raise ValueError(f"{len(arrays)} outputs, but load announced {len(loaded.outputs)}")
            unseen = tuple(Place(layer, port) for layer, port in answer.get("unseen", ()))
        except (ValueError, KeyError, TypeError) as error:
            return Crash(f"it broke the protocol: its answer to infer is wrong: {error}")
        outputs = (Output(names, type, array) for names, (type, array) in zip(loaded.outputs, arrays))
        return Outputs(tuple(outputs), time.monotonic() - began, unseen)

    def runtime(self, feeds: Mapping[Any, np.ndarray], runs: int = 1) -> RuntimeGraph | Failure:
        """See ``Engine.runtime``."""
        loaded = self._running()
        if not isinstance(loaded, Loaded):
            return loaded
        try:
            with self._sent(loaded, feeds) as inputs:
                answer = self._ask("runtime", inputs=inputs, runs=runs)
        except Failed as failed:
            return failed.outcome
        except ValueError as error:
            return Refusal(str(error))
        if "nodes" not in answer:  # a harness that does not know the request
            return Refusal(f"{self.name} shows no runtime graph", "unavailable")
        try:
            return RuntimeGraph.of(answer, runs)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return Crash(f"it broke the protocol: its answer to runtime is wrong: {error}")

    def save(self, path: str | os.PathLike[str]) -> Failure | None:
        """See ``Engine.save``."""
        loaded = self._running()
        if not isinstance(loaded, Loaded):
            return loaded
        try:
            answer = self._ask("save", path=os.path.abspath(path))
        except Failed as failed:
            return failed.outcome
        return None if answer.get("saved") else Refusal(f"{self.name} saves no model", "unavailable")

    def _running(self) -> Loaded | Failure:
        """Return the interface of the loaded model. After the end of the process, start it and load the model again."""
        if self._loaded is not None and self._process is not None and self._process.is_running:
            return self._loaded
        return self.load(inner=self._inner)

    @contextmanager
    def _sent(self, loaded: Loaded, feeds: Mapping[Any, np.ndarray]) -> Iterator[list[dict[str, Any]]]:
        """Yield the records of the inputs, and remove their files afterwards. Raises ValueError for a wrong input."""
        assert self._process is not None
        files = [self._process.folder / f"input{position}.bin" for position in range(len(loaded.inputs))]
        try:
            yield [
                write_tensor(converted(array, input.type), None, file)
                for array, input, file in zip(_by_position(loaded, feeds), loaded.inputs, files)
            ]
        finally:
            for file in files:
                file.unlink(missing_ok=True)

    def reset(self) -> Failure | None:
        """See ``Engine.reset``."""
        if self._process is None or not self._process.is_running:
            return None  # it will start without state
        try:
            self._ask("reset")
        except Failed as failed:
            return failed.outcome
        return None

    def _ask(
        self,
        command: str,
        on_value: Callable[[Value], None] | None = None,
        on_repeated: Callable[[Value], None] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """Return the answer to a request. Raises Failed."""
        assert self._process is not None
        visits: Counter[Place] = Counter()
        for kind, content in self._process.ask(command, **arguments):
            if kind == "ok":
                return content
            place = Place(content["layer"], content["port"])
            is_repeated = bool(content.get("repeated"))
            value = Value.of(place, 0 if is_repeated else visits[place], content["tensor"], content.get("copy", 0))
            visits[place] += not is_repeated
            receive = on_repeated if is_repeated else on_value
            if receive is None:
                value.drop()
                continue
            try:
                receive(value)
            except BaseException:
                self._process.kill()  # it would go on to answer this request
                raise
        raise AssertionError("a request ends with an answer or with Failed")


class NotStartedError(Exception):
    """The outcome of an engine that did not start."""

    def __init__(self, outcome: Failure) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def _loaded(answer: Mapping[str, Any]) -> Loaded:
    """Return the interface that a harness describes. Raises ValueError, KeyError, TypeError or AttributeError."""
    return Loaded(
        tuple(Input(tuple(i["names"]), str(i["type"]), str(i["shape"])) for i in answer["inputs"]),
        tuple(tuple(map(str, o["names"])) for o in answer["outputs"]),
        {
            Place(str(v["layer"]), int(v["port"])): Origin(str(v["type"]), tuple(v["names"]))
            for v in answer.get("values", ())
        },
        bool(answer.get("neutral", False)),
    )


def _by_position(loaded: Loaded, feeds: Mapping[Any, np.ndarray]) -> list[np.ndarray]:
    """Return the inputs in order. Raises ValueError if one is missing or unknown."""
    positions = {name: position for position, input in enumerate(loaded.inputs) for name in input.names}
    by_position = {positions.get(key, key) if isinstance(key, str) else key: array for key, array in feeds.items()}
    for key in by_position:
        if not isinstance(key, int) or not 0 <= key < len(loaded.inputs):
            raise ValueError(f"the model has no input {key!r}")
    for position, input in enumerate(loaded.inputs):
        if position not in by_position:
            raise ValueError(f'input "{(input.names or (str(position),))[0]}" is missing')
    return [by_position[position] for position in range(len(loaded.inputs))]
