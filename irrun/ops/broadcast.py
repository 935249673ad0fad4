"""Broadcast: replicate a tensor to a target shape.  Spec: movement/broadcast-{1,3}."""

from collections.abc import Iterator

import numpy as np

from irrun.diagnostics import Refused
from irrun.kernels.elementwise import copied
from irrun.opdef import Kernel, Op, Request, Site, Value, attr, op, opt, ports
from irrun.opdef.columns import in_columns
from irrun.ops._broadcasting import refuse
from irrun.types import PartialShape


@op("Broadcast", since=3, spec="movement/broadcast-3")
class Broadcast3(Op):
    """Replicate ``data`` so that it fits ``target_shape``.

    ``target_shape`` and ``axes_mapping`` should have one element type: `irrun check` warns if they differ.

    C1  ``axes_mapping`` is connected if and only if ``mode`` is explicit.
    C2  Mode explicit: ``axes_mapping`` has one entry for each axis of ``data``, in ascending order and within the rank
        of the target.
    C3  Modes numpy and explicit: each dim of ``data`` is 1 or equals the dim of the target with which it is aligned.
    C4  Mode bidirectional: two aligned dims are equal, or one of them is 1.
    C5  ``target_shape`` and ``axes_mapping`` are 1D, and no entry of ``target_shape`` is negative.
    C6  Mode numpy: the rank of ``data`` is at most that of the target.
    """

    mode = attr.choice("numpy", "explicit", "bidirectional", default="numpy")
    inputs = ports(data="T", target_shape="int", axes_mapping=opt("int"))
    carries = True

    def doubts(
        self, at: Site, data: Value, target_shape: Value, axes_mapping: Value | None = None
    ) -> Iterator[Refused]:
        if axes_mapping is None or "dynamic" in (target_shape.type.kind, axes_mapping.type.kind):
            return
        if axes_mapping.type is not target_shape.type:
            message = f"target_shape is {target_shape.type}, but axes_mapping is {axes_mapping.type}"
            yield Refused(message, None, f"convert axes_mapping to {target_shape.type}", "IR406")

    def infer(self, at: Site, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> Value:
        mapped = axes_mapping is not None
        message = f"mode is {self.mode}, but axes_mapping is {'' if mapped else 'not '}connected"
        at.require(mapped == (self.mode == "explicit"), "C1", message)
        at.require(target_shape.rank in (None, 1), "C5", f"target_shape is {target_shape.shape}, not 1D")
        target = target_shape.as_shape()  # [1,?,50]: each entry as far as it is known
        if target.dims is None:
            return data.reshaped(target)
        at.require(all(d.hi >= 0 for d in target), "C5", f"target_shape {target} has a negative entry")
        if data.shape.dims is None:
            return data.reshaped(PartialShape(None) if self.mode == "bidirectional" else target)
        if self.mode == "bidirectional":
            both = data.shape.broadcast(target)
            if both is None:
                message = f"data {data.shape} and target {target} cannot be broadcast"
                refuse(at, "C4", message, ("data", "target"), data.shape, target)
            return data.reshaped(both)
        axes = self._axes(at, data.shape, target, axes_mapping)
        if axes is None:
            return data.reshaped(target)
        dims = list(target)
        for axis, dim in zip(axes, data.shape):
            fitting = dim.broadcast(dims[axis])
            fits = fitting is not None and (dims[axis].fits(1) or fitting.meet(dims[axis]) is not None)
            if not fits or (dims[axis] == 1 and not dim.fits(1)):
                shapes = {"data": data.shape.dims, "target": target.dims}
                at.refuse(
                    "C3",
                    f"data {data.shape} does not fit target {target}: "
                    f"dim {dim} meets dim {dims[axis]} at axis {axis} of the target",
                    notes=in_columns(shapes, [axis - len(target)]) if self.mode == "numpy" else (),
                    dims=(dim, dims[axis]),
                )
            if not dim.fits(1):
                dims[axis] = dims[axis].meet(dim) or dims[axis]
        return data.reshaped(dims)

    def _axes(
        self, at: Site, data: PartialShape, target: PartialShape, axes_mapping: Value | None
    ) -> tuple[int, ...] | None:
        """Return the axis of the target for each axis of ``data``; None where ``axes_mapping`` is not known yet."""
        rank = len(data)
        if self.mode == "numpy":
            message = f"data {data} has rank {rank}, more than the target {target}, which has rank {len(target)}"
            at.require(rank <= len(target), "C6", message)
            return tuple(range(len(target) - rank, len(target)))
        assert axes_mapping is not None
        at.require(axes_mapping.rank in (None, 1), "C5", f"axes_mapping is {axes_mapping.shape}, not 1D")
        count = axes_mapping.shape.count()
        message = f"axes_mapping has length {count}, but data {data} has rank {rank} (target {target})"
        at.require(count.fits(rank), "C2", message)
        axes = axes_mapping.ints()
        if axes is None:
            return None
        at.require(list(axes) == sorted(set(axes)), "C2", f"axes_mapping {list(axes)} is not in ascending order")
        at.require(
            all(0 <= a < len(target) for a in axes),
            "C2",
            f"axes_mapping {list(axes)} of data {data} names an axis outside the target {target} of rank {len(target)}",
        )
        return axes

    def prepare(self, request: Request) -> Kernel | None:
        data, target_shape, axes_mapping = request.first(3)
        if data is None or target_shape is None:
            return None
        if self.mode != "explicit":
            axes_mapping = None
        shape, target = data.shape.static, target_shape.ints()
        if shape is None or target is None or (axes_mapping is not None and axes_mapping.ints() is None):
            return None
        out_shape = self.infer(Site(), *request.inputs).shape.static  # type: ignore[arg-type]
        assert out_shape is not None
        axes = range(len(out_shape) - len(shape), len(out_shape)) if axes_mapping is None else axes_mapping.ints()
        aligned = [1] * len(out_shape)
        for axis, n in zip(axes or (), shape):
            aligned[axis] = n

        def call(data: np.ndarray, *_: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
            data = data.reshape(aligned)
            return np.broadcast_to(data, out_shape) if out is None else copied(data, out)

        return Kernel(call, out="whole")

    def run(self, data: np.ndarray, target_shape: np.ndarray, axes_mapping: np.ndarray | None = None) -> np.ndarray:
        target = tuple(int(n) for n in target_shape.tolist())
        if self.mode == "bidirectional":
            target = np.broadcast_shapes(data.shape, target)
        if self.mode == "explicit" and axes_mapping is not None:
            aligned = [1] * len(target)
            for axis, n in zip(axes_mapping.tolist(), data.shape):
                aligned[axis] = n
            data = data.reshape(aligned)
        return data[...] if data.shape == target else np.broadcast_to(data, target)


@op("Broadcast", since=1, spec="movement/broadcast-1")
class Broadcast1(Broadcast3):
    """Compute the same as Broadcast-3, without bidirectional mode.

    In mode numpy, ``axes_mapping`` is ignored: OpenVINO writes a constant without a meaning there.

    C1  Mode explicit: ``axes_mapping`` is connected.
    C2  Mode explicit: ``axes_mapping`` has one entry for each axis of ``data``, in ascending order and within the rank
        of the target.
    C3  Each dim of ``data`` is 1 or equals the dim of the target with which it is aligned.
    C5  ``target_shape`` and ``axes_mapping`` are 1D, and no entry of ``target_shape`` is negative.
    C6  Mode numpy: the rank of ``data`` is at most that of the target.
    """

    # OpenVINO writes mode explicit of opset1 as "none"
    mode = attr.choice("numpy", "explicit", default="numpy", also={"none": "explicit"})

    def doubts(
        self, at: Site, data: Value, target_shape: Value, axes_mapping: Value | None = None
    ) -> Iterator[Refused]:
        return iter(())  # its inputs have element types of their own

    def infer(self, at: Site, data: Value, target_shape: Value, axes_mapping: Value | None = None) -> Value:
        return super().infer(at, data, target_shape, axes_mapping if self.mode == "explicit" else None)
