"""openvino.preprocess: put the preparation of inputs and outputs into the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

import irrun.build as build
from irrun.compat.openvino._building.layouts import Layout, axis_of, moved
from irrun.compat.openvino._building.nodes import BuiltNode, BuiltOutput, unwrapped
from irrun.compat.openvino._errors import Covered, NotCovered, OpenVINOError, translated
from irrun.compat.openvino._models import Model
from irrun.compat.openvino._ports import ModelOutput
from irrun.compat.openvino._shapes import PartialShape
from irrun.compat.openvino._types import Type
from irrun.diagnostics import IrrunError
from irrun.model import Model as Graph
from irrun.surgery import merge
from irrun.types import Dim
from irrun.types import PartialShape as OwnShape

__all__ = [
    "ColorFormat", "InputInfo", "InputModelInfo", "InputTensorInfo", "OutputInfo", "OutputModelInfo",
    "OutputTensorInfo", "PaddingMode", "PostProcessSteps", "PrePostProcessor", "PreProcessSteps", "ResizeAlgorithm",
]  # fmt: skip


class ResizeAlgorithm(Enum):
    """How ``PreProcessSteps.resize`` interpolates. The values are the modes of Interpolate-11."""

    RESIZE_LINEAR = "linear"
    RESIZE_CUBIC = "cubic"
    RESIZE_NEAREST = "nearest"
    RESIZE_BILINEAR_PILLOW = "bilinear_pillow"
    RESIZE_BICUBIC_PILLOW = "bicubic_pillow"


class ColorFormat(Enum):
    """The order of colours in the dim C of a picture."""

    UNDEFINED = ""
    RGB = "RGB"
    BGR = "BGR"
    RGBX = "RGBX"
    BGRX = "BGRX"
    GRAY = "GRAY"
    NV12_SINGLE_PLANE = "NV12_SINGLE_PLANE"
    NV12_TWO_PLANES = "NV12_TWO_PLANES"
    I420_SINGLE_PLANE = "I420_SINGLE_PLANE"
    I420_THREE_PLANES = "I420_THREE_PLANES"


class PaddingMode(Enum):
    """How ``PreProcessSteps.pad`` fills. The values are the modes of Pad."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


_COLORS = (ColorFormat.RGB, ColorFormat.BGR, ColorFormat.RGBX, ColorFormat.BGRX)


@dataclass
class _Tensor(Covered):
    """What the caller says of a tensor: of the user, or of the model."""

    element_type: Type | None = None
    layout: Layout = field(default_factory=Layout)

    def set_layout(self, layout: Layout | str) -> Any:
        """Say what each dim means."""
        self.layout = layout if isinstance(layout, Layout) else Layout(layout)
        return self


@dataclass
class OutputTensorInfo(_Tensor):
    """What the caller gets."""

    def set_element_type(self, type: Type) -> Any:
        """Say which element type the caller wants."""
        if not isinstance(type, Type):
            raise TypeError(f"an element type is a Type, not {type!r}")
        self.element_type = type
        return self


@dataclass
class InputTensorInfo(OutputTensorInfo):
    """What the caller passes."""

    shape: PartialShape | None = None
    size: tuple[Dim, Dim] | None = None
    color: ColorFormat = ColorFormat.UNDEFINED

    def set_shape(self, shape: Any) -> InputTensorInfo:
        """Say which shape the caller passes."""
        self.shape = shape if isinstance(shape, PartialShape) else PartialShape(list(shape))
        return self

    def set_from(self, tensor: Any) -> InputTensorInfo:
        """Take the element type and the shape of a tensor."""
        return self.set_element_type(tensor.element_type).set_shape(list(tensor.shape))

    def set_spatial_static_shape(self, height: int, width: int) -> InputTensorInfo:
        """Say which height and width the caller passes."""
        self.size = (Dim(height), Dim(width))
        return self

    def set_spatial_dynamic_shape(self) -> InputTensorInfo:
        """Say that the caller passes any height and width."""
        self.size = (Dim.unknown(), Dim.unknown())
        return self

    def set_color_format(self, format: ColorFormat, sub_names: Sequence[str] = ()) -> InputTensorInfo:
        """Say which colours the dim C holds."""
        if format not in _COLORS or sub_names:
            raise NotCovered(f"the colour format {format.name}", "ColorFormat.RGB, BGR, RGBX or BGRX")
        self.color = format
        return self


InputModelInfo = OutputModelInfo = _Tensor


@dataclass
class _State:
    """A tensor between two steps."""

    value: build.Output
    layout: Layout
    color: ColorFormat
    target: OwnShape
    """The shape that the model expects, in the layout of the model."""
    target_layout: Layout
    target_type: Type

    @property
    def rank(self) -> int:
        if self.value.shape.rank is None:
            raise OpenVINOError("preprocessing needs a known rank")
        return self.value.shape.rank

    def axis(self, name: str) -> int:
        """Return the axis of a dim. Raises OpenVINOError if the layout does not name it."""
        axis = axis_of(self.layout, name, self.rank)
        if axis is None:
            raise OpenVINOError(f"the layout {self.layout} has no dim {name}; set it with tensor().set_layout(…)")
        return axis


_Step = Callable[[_State], None]


class PostProcessSteps(Covered):
    """What is done with a tensor, in order."""

    def __init__(self) -> None:
        self._steps: list[_Step] = []

    def _add(self, step: _Step) -> Any:
        self._steps.append(step)
        return self

    def convert_element_type(self, type: Type | None = None) -> Any:
        """Convert to an element type, by default to the one that the model, or the caller of an output, expects."""
        return self._add(lambda state: _convert(state, type or state.target_type))

    def convert_layout(self, layout: Any = None) -> Any:
        """Convert to a layout, by default to that of the model or caller; a list of axes transposes by them."""
        if isinstance(layout, (list, tuple)):
            return self._add(lambda state: _transpose(state, list(layout), Layout()))
        target = Layout(layout) if isinstance(layout, str) else layout
        return self._add(lambda state: _lay_out(state, target or state.target_layout))

    def custom(self, operation: Callable[[Any], Any]) -> Any:
        """Call a function that builds nodes from the output that it gets."""

        def step(state: _State) -> None:
            made = unwrapped(operation(BuiltOutput(BuiltNode(state.value.node), state.value.index)))
            state.value = made.output if isinstance(made, build.Node) else made

        return self._add(step)


class PreProcessSteps(PostProcessSteps):
    """What is done with an input, in order."""

    def mean(self, value: float | Sequence[float]) -> PreProcessSteps:
        """Subtract a number, or one for each channel."""
        return self._add(lambda state: _by_channel(state, build.Subtract, value, "Mean"))

    def scale(self, value: float | Sequence[float]) -> PreProcessSteps:
        """Divide by a number, or by one for each channel."""
        return self._add(lambda state: _by_channel(state, build.Divide, value, "Scale"))

    def resize(self, alg: ResizeAlgorithm, dst_height: int | None = None, dst_width: int | None = None) -> Any:
        """Resize H and W, by default to those of the model."""
        return self._add(lambda state: _resize(state, alg, dst_height, dst_width))

    def reverse_channels(self) -> PreProcessSteps:
        """Reverse the order of the channels."""
        return self._add(lambda state: _take_channels(state, None))

    def convert_color(self, dst_format: ColorFormat) -> PreProcessSteps:
        """Change the order of the colours."""
        if dst_format not in _COLORS[:2]:
            raise NotCovered(f"conversion to the colour format {dst_format.name}", "ColorFormat.RGB or BGR")
        return self._add(lambda state: _recolor(state, dst_format))

    def crop(self, begin: Sequence[int], end: Sequence[int]) -> PreProcessSteps:
        """Keep what lies from ``begin`` to ``end`` on each axis."""
        axes = list(range(len(begin)))

        def step(state: _State) -> None:
            state.value = build.Slice(state.value, list(begin), list(end), [1] * len(begin), axes).output

        return self._add(step)

    def pad(
        self, pads_begin: Sequence[int], pads_end: Sequence[int], value: float | Sequence[float], mode: PaddingMode
    ) -> PreProcessSteps:
        """Add elements before and behind each axis."""

        def step(state: _State) -> None:
            fill = np.array(np.ravel(value)[0], state.value.type.dtype)
            state.value = build.Pad(
                state.value, list(pads_begin), list(pads_end), fill, pad_mode=mode.value
            ).output  # fmt: skip

        return self._add(step)


class InputInfo(Covered):
    """An input: the tensor that the caller passes, the steps, and the input of the model."""

    def __init__(self) -> None:
        self._tensor, self._steps, self._model = InputTensorInfo(), PreProcessSteps(), InputModelInfo()

    def tensor(self) -> InputTensorInfo:
        return self._tensor

    def preprocess(self) -> PreProcessSteps:
        return self._steps

    def model(self) -> _Tensor:
        return self._model


class OutputInfo(Covered):
    """An output: the output of the model, the steps, and the tensor that the caller gets."""

    def __init__(self) -> None:
        self._tensor, self._steps, self._model = OutputTensorInfo(), PostProcessSteps(), OutputModelInfo()

    def tensor(self) -> OutputTensorInfo:
        return self._tensor

    def postprocess(self) -> PostProcessSteps:
        return self._steps

    def model(self) -> _Tensor:
        return self._model


class PrePostProcessor(Covered):
    """Collects what is to be done with the inputs and outputs of a model; ``build`` returns the new model."""

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"a PrePostProcessor takes a Model, not a {type(model).__name__}")
        self._model = model
        self._inputs = [InputInfo() for _ in model.inputs]
        self._outputs = [OutputInfo() for _ in model.outputs]

    def input(self, key: int | str | None = None) -> InputInfo:
        return self._inputs[_position(self._model.inputs, self._model.input, key)]

    def output(self, key: int | str | None = None) -> OutputInfo:
        return self._outputs[_position(self._model.outputs, self._model.output, key)]

    def build(self) -> Model:
        """Return a model with all steps. Raises OpenVINOError if a step cannot be made, or does not fit the model."""
        model = self._model
        graph = model._executable.model
        try:
            before, layouts = self._before(graph)
            after = self._after(graph)
            plain = _without_names(graph)
            whole = merge(before, plain, {f"irrun:{p.id}": p.name for p in graph.parameters})
            results = {_RESULT.format(i): f"irrun:{i}" for i in range(len(model.outputs))}
            whole = _renamed(merge(whole, after, results), model)
        except IrrunError as error:
            raise error if isinstance(error, (NotCovered, OpenVINOError)) else translated(error) from error
        made = Model(replace(whole, name=graph.name))
        made._friendly_name, made._layouts = model._friendly_name, layouts
        return made

    def _before(self, graph: Graph) -> tuple[Graph, dict[int, Layout]]:
        """Return the model of all steps before ``graph``, and the layouts of its inputs."""
        parameters: list[build.Node] = []
        results: dict[str, build.Output] = {}
        layouts: dict[int, Layout] = {}
        for position, (port, info) in enumerate(zip(self._model.inputs, self._inputs)):
            own = info._model.layout
            own = self._model._layouts.get(position, Layout()) if own.empty else own
            layout = own if info._tensor.layout.empty else info._tensor.layout
            element_type = info._tensor.element_type or port.element_type
            shape = _user_shape(info._tensor, port._shape, own, layout)
            node = build.parameter(shape, element_type._own.name, name=port._layer.name)
            state = _State(node.output, layout, info._tensor.color, port._shape, own, port.element_type)
            _run(info._steps, state)
            _convert(state, state.target_type)
            _lay_out(state, own)
            if state.value.shape.meet(port._shape) is None:
                shapes = f"gives {state.value.shape}, but the model expects {port._shape}"
                raise OpenVINOError(f'the preprocessing of input "{port._layer.name}" {shapes}')
            inner = port._inner_type.name  # an input of an IR v10 model may have another type inside
            if state.value.type.name != inner:
                state.value = build.Convert(state.value, destination_type=inner).output
            results[f"irrun:{port._layer.id}"] = state.value
            parameters.append(node)
            layouts[position] = layout
        made = build.model(results, inputs=parameters, name=graph.name)
        layers = dict(made.layers)
        for layer, port in zip(made.parameters, self._model.inputs):
            output = replace(layer.outputs[0], names=port._layer.outputs[0].names)
            layers[layer.id] = replace(layer, outputs=(output,))
        return replace(made, layers=layers, version=graph.version), {i: x for i, x in layouts.items() if not x.empty}

    def _after(self, graph: Graph) -> Graph:
        """Return the model of all steps after ``graph``."""
        parameters: list[build.Node] = []
        results: dict[str, build.Output] = {}
        for position, (port, info) in enumerate(zip(self._model.outputs, self._outputs)):
            node = build.parameter(port._shape, port._inner_type.name, name=f"irrun:{position}")
            own, tensor = info._model.layout, info._tensor
            wanted = tensor.element_type or port.element_type
            target = own if tensor.layout.empty else tensor.layout
            state = _State(node.output, own, ColorFormat.UNDEFINED, port._shape, target, wanted)
            _run(info._steps, state)
            if tensor.element_type is not None:
                _convert(state, wanted)
            _lay_out(state, target)
            parameters.append(node)
            results[_RESULT.format(position)] = state.value
        return replace(build.model(results, inputs=parameters), version=graph.version)


_RESULT = "irrun:result:{}"


def _position(ports: Sequence[ModelOutput], choose: Callable[[Any], ModelOutput], key: Any) -> int:
    try:
        return ports.index(choose(key))
    except IndexError as error:
        raise OpenVINOError(str(error)) from error


def _run(steps: PostProcessSteps, state: _State) -> None:
    for step in steps._steps:
        step(state)


def _user_shape(tensor: InputTensorInfo, expected: OwnShape, own: Layout, layout: Layout) -> OwnShape:
    """Return the shape that the caller passes."""
    if tensor.shape is not None:
        return tensor.shape._own
    if expected.dims is None:
        return expected
    dims = list(expected.dims)
    axes = moved(own, layout, len(dims))
    dims = [dims[axis] for axis in axes] if axes else dims
    if tensor.size is not None:
        for name, dim in zip("HW", tensor.size):
            axis = axis_of(layout, name, len(dims))
            if axis is None:
                raise OpenVINOError(f"the layout {layout} has no dim {name}; set it with tensor().set_layout(…)")
            dims[axis] = dim
    if tensor.color in (ColorFormat.RGBX, ColorFormat.BGRX) and (axis := axis_of(layout, "C", len(dims))) is not None:
        dims[axis] = Dim(4)
    return OwnShape(tuple(Dim(d.lo, d.hi) for d in dims))


def _convert(state: _State, type: Type) -> None:
    if state.value.type is not type._own:
        state.value = build.Convert(state.value, destination_type=type._own.name).output


def _transpose(state: _State, axes: list[int], layout: Layout) -> None:
    state.value = build.Transpose(state.value, axes).output
    state.layout = layout


def _lay_out(state: _State, target: Layout) -> None:
    axes = None if state.layout.empty or target.empty else moved(state.layout, target, state.rank)
    if axes is not None and axes != list(range(len(axes))):
        _transpose(state, axes, target)


def _by_channel(state: _State, operation: Callable[..., build.Node], value: Any, what: str) -> None:
    if state.value.type.kind != "float":
        raise OpenVINOError(
            f"{what} preprocessing can be applied to 'float' inputs, not to {state.value.type}; call "
            "convert_element_type(Type.f32) first"
        )
    numbers = np.array(value, state.value.type.dtype)
    if numbers.ndim:
        axis = state.axis("C")
        if not state.value.shape[axis].fits(numbers.size) and numbers.size != 1:
            raise OpenVINOError(f"{what} has {numbers.size} values, but there are {state.value.shape[axis]} channels")
        numbers = numbers.reshape([-1 if i == axis else 1 for i in range(state.rank)])
    state.value = operation(state.value, numbers).output


def _resize(state: _State, algorithm: ResizeAlgorithm, height: int | None, width: int | None) -> None:
    sizes: list[int] = []
    for name, size in (("H", height), ("W", width)):
        axis = axis_of(state.target_layout, name, len(state.target.dims or ()))
        known = state.target[axis].value if size is None and axis is not None else size
        if known is None:
            raise OpenVINOError(f"the model does not say its {name}; pass it to resize, or set the layout of the model")
        sizes.append(known)
    state.value = build.Interpolate(
        state.value, sizes, [state.axis("H"), state.axis("W")], mode=algorithm.value, shape_calculation_mode="sizes",
        opset=11,
    ).output  # fmt: skip


def _take_channels(state: _State, channels: list[int] | None) -> None:
    """Keep some channels in this order, or all in reverse order."""
    axis = state.axis("C")
    count = state.value.shape[axis].value
    if channels is None and count is None:
        raise OpenVINOError("the channels of a tensor whose C is unknown cannot be reversed")
    state.value = build.Gather(state.value, channels or list(reversed(range(count or 0))), axis).output


def _recolor(state: _State, format: ColorFormat) -> None:
    if state.color is ColorFormat.UNDEFINED:
        raise OpenVINOError("the colour format is unknown; set it with tensor().set_color_format(…)")
    order = [state.color.value.index(color) for color in format.value]
    if state.color is not format:
        _take_channels(state, order)
    state.color = format


def _without_names(graph: Graph) -> Graph:
    """Return the model with numbered Results, so that the names of its outputs are free for the last steps."""
    layers = dict(graph.layers)
    for position, result in enumerate(graph.results):
        layers[result.id] = replace(result, name=_RESULT.format(position), output_names=(_RESULT.format(position),))
        feed = graph.feeds[result.id][0]
        assert feed is not None
        ports = list(layers[feed[0]].outputs)
        ports[feed[1]] = replace(ports[feed[1]], names=())
        layers[feed[0]] = replace(layers[feed[0]], outputs=tuple(ports))
    return replace(graph, layers=layers)


def _renamed(graph: Graph, model: Model) -> Graph:
    """Return the model whose outputs have the names that those of ``model`` have."""
    layers = dict(graph.layers)
    for result, port in zip(graph.results, model.outputs):
        names = tuple(sorted(port._names))
        layers[result.id] = replace(result, name=port._layer.name, output_names=names)
        feed = graph.feeds[result.id][0]
        assert feed is not None
        ports = list(layers[feed[0]].outputs)
        ports[feed[1]] = replace(ports[feed[1]], names=names)
        layers[feed[0]] = replace(layers[feed[0]], outputs=tuple(ports))
    return replace(graph, layers=layers)
