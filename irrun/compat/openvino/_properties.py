"""openvino.properties: the names of properties, and what becomes of their values."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any, Final

from irrun.compat.openvino._errors import NotCoveredAttribute, OpenVINOError, say_once
from irrun.compat.openvino._types import Type

__all__ = ["MODULES", "Properties", "Property"]


class Property(str):
    """The name of a property. It is a key of a config; called with a value, it gives the pair of both."""

    __slots__ = ()

    def __call__(self, *value: Any) -> Any:
        return (str(self), *value) if value else str(self)


_NAMES: Final = {
    "": "auto_batch_timeout available_devices cache_dir cache_encryption_callbacks cache_mode compilation_num_threads "
    "enable_mmap enable_profiling=PERF_COUNT enable_weightless execution_devices force_tbb_terminate "
    "inference_num_threads key_cache_group_size key_cache_precision loaded_from_cache max_batch_size "
    "model_name=NETWORK_NAME num_streams optimal_batch_size optimal_number_of_infer_requests "
    "range_for_async_infer_requests range_for_streams supported_properties value_cache_group_size "
    "value_cache_precision weights_path workload_type",
    "hint": "activations_scale_factor allow_auto_batching compiled_blob dynamic_quantization_group_size "
    "enable_cpu_pinning enable_cpu_reservation enable_hyper_threading execution_mode=EXECUTION_MODE_HINT "
    "inference_precision=INFERENCE_PRECISION_HINT kv_cache_precision model=MODEL_PTR model_distribution_policy "
    "model_priority num_requests=PERFORMANCE_HINT_NUM_REQUESTS performance_mode=PERFORMANCE_HINT scheduling_core_type",
    "device": "architecture=DEVICE_ARCHITECTURE capabilities=OPTIMIZATION_CAPABILITIES full_name=FULL_DEVICE_NAME "
    "gops=DEVICE_GOPS id=DEVICE_ID luid=DEVICE_LUID pci_info=DEVICE_PCI_INFO priorities=MULTI_DEVICE_PRIORITIES "
    "properties=DEVICE_PROPERTIES thermal=DEVICE_THERMAL type=DEVICE_TYPE uuid=DEVICE_UUID",
    "log": "level=LOG_LEVEL",
    "streams": "num=NUM_STREAMS",
    "intel_cpu": "denormals_optimization=CPU_DENORMALS_OPTIMIZATION "
    "sparse_weights_decompression_rate=CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE tbb_partitioner",
    "intel_gpu": "device_max_alloc_mem_size=GPU_DEVICE_MAX_ALLOC_MEM_SIZE "
    "device_total_mem_size=GPU_DEVICE_TOTAL_MEM_SIZE "
    "disable_winograd_convolution=GPU_DISABLE_WINOGRAD_CONVOLUTION enable_loop_unrolling=GPU_ENABLE_LOOP_UNROLLING "
    "execution_units_count=GPU_EXECUTION_UNITS_COUNT memory_statistics=GPU_MEMORY_STATISTICS "
    "uarch_version=GPU_UARCH_VERSION",
    "intel_auto": "device_bind_buffer devices_utilization_threshold enable_runtime_fallback enable_startup_fallback "
    "low_power_device perf_curve_table schedule_policy",
}  # fmt: skip
"""The properties by module: the name in Python and, unless it is the same in capitals, that in a config."""

_ENUMS: Final = {
    "": {
        "CacheMode": "OPTIMIZE_SIZE OPTIMIZE_SPEED", "WorkloadType": "DEFAULT EFFICIENT",
        "CompatibilityCheck": "NOT_APPLICABLE SUPPORTED UNSUPPORTED",
    },
    "hint": {
        "ExecutionMode": "PERFORMANCE ACCURACY", "ModelDistributionPolicy": "TENSOR_PARALLEL PIPELINE_PARALLEL",
        "PerformanceMode": "LATENCY THROUGHPUT CUMULATIVE_THROUGHPUT", "Priority": "LOW MEDIUM HIGH DEFAULT",
        "SchedulingCoreType": "ANY_CORE PCORE_ONLY ECORE_ONLY",
    },
    "device": {"Type": "INTEGRATED DISCRETE"},
    "log": {"Level": "NO ERR WARNING INFO DEBUG TRACE"},
    "streams": {"Num": "AUTO NUMA"},
    "intel_cpu": {"TbbPartitioner": "STATIC AUTO"},
    "intel_auto": {"SchedulePolicy": "ROUND_ROBIN DEVICE_PRIORITY DEFAULT"},
}  # fmt: skip


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, [n for n in vars(self) if not n.startswith("_")], 1)
        raise NotCoveredAttribute(f"{self.__name__}.{name}", f"{self.__name__}.{near[0]}" if near else None)


def _module(part: str) -> ModuleType:
    module = _Module(f"openvino.properties.{part}".rstrip("."))
    for item in _NAMES[part].split():
        name, _, text = item.partition("=")
        setattr(module, name, Property(text or name.upper()))
    for name, members in _ENUMS.get(part, {}).items():
        setattr(module, name, Enum(name, members.split()))
    return module


MODULES: Final = {part: _module(part) for part in _NAMES}
"""The modules: that of openvino.properties under the empty name, and its parts by their names."""
for _part, _made in MODULES.items():
    if _part:
        setattr(MODULES[""], _part, _made)

_KNOWN: Final = {str(value) for m in MODULES.values() for value in vars(m).values() if isinstance(value, Property)}

_EFFECTIVE: Final = ("PERF_COUNT", "NETWORK_NAME")
"""Properties that mean the same here."""

_DEFAULTS: Final[Mapping[str, Any]] = {
    "PERFORMANCE_HINT": "LATENCY", "EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_PRECISION_HINT": Type.f32,  # type: ignore[attr-defined]
    "PERF_COUNT": "NO", "NUM_STREAMS": 1, "OPTIMAL_NUMBER_OF_INFER_REQUESTS": 1, "EXECUTION_DEVICES": ["CPU"],
    "FULL_DEVICE_NAME": "irrun", "AVAILABLE_DEVICES": [""], "OPTIMIZATION_CAPABILITIES": ["FP32", "FP16", "BF16"],
    "RANGE_FOR_ASYNC_INFER_REQUESTS": (1, 1, 1), "RANGE_FOR_STREAMS": (1, 1), "PERFORMANCE_HINT_NUM_REQUESTS": 0,
    "INFERENCE_NUM_THREADS": 0, "CACHE_DIR": "", "LOG_LEVEL": "NO", "SUPPORTED_PROPERTIES": sorted(_KNOWN),
}  # fmt: skip


class Properties:
    """The properties of a Core or of a CompiledModel. All that openvino knows are accepted."""

    def __init__(self, config: Any = None, inherited: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = dict(inherited or {})
        self.update(config)

    def update(self, config: Any) -> None:
        """Set properties: a mapping, or pairs as calls of a Property give them.

        Raises OpenVINOError for a name that openvino does not know.
        """
        pairs = config.items() if isinstance(config, Mapping) else config or ()
        for name, value in pairs:
            if str(name) == "DEVICE_PROPERTIES":
                self.update(next(iter(value.values()), None) if isinstance(value, Mapping) else None)
                continue
            if str(name) not in _KNOWN:
                raise OpenVINOError(f"Unsupported property {name}{_near(str(name))}")
            self.values[str(name)] = _stored(value)
            _say(str(name), self.values[str(name)])

    def get(self, name: Any, **own: Any) -> Any:
        """Return the value that was set, or that irrun has. Raises OpenVINOError for an unknown property."""
        for values in (own, self.values, _DEFAULTS):
            if str(name) in values:
                value = values[str(name)]
                return ("YES" if value else "NO") if str(name) == "PERF_COUNT" and isinstance(value, bool) else value
        raise OpenVINOError(f"Unsupported property: {name}{_near(str(name))}")

    @property
    def profiles(self) -> bool:
        """Whether requests measure the time of each layer."""
        return str(self.get("PERF_COUNT")).upper() in ("YES", "TRUE")


def _near(name: str) -> str:
    near = difflib.get_close_matches(name, _KNOWN, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _stored(value: Any) -> Any:
    return value.name if isinstance(value, Enum) else value


def _say(name: str, value: Any) -> None:
    """Say once that a property has no effect, unless it has or asks for what irrun does anyway."""
    if name in _EFFECTIVE:
        return
    text = value._own.name if isinstance(value, Type) else str(value)
    if name == "INFERENCE_PRECISION_HINT":
        if text.lower() != "f32":
            say_once(f"{name}={text}", "models run in the precision that they declare")
        return
    say_once(name, "irrun has one device and one stream")
