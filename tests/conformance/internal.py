"""Cases of OpenVINO's internal operations, which are a suite of their own: their pages have no versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from internal_faults import LAYERS, inferred
from internal_operations import i32, made
from internal_refusals import BROKEN
from irrun.conformance.suite import Case, Operation, Step, Suite, tensor_record
from irrun.growing.internal import OFF
from irrun.inference.layer import infer
from irrun.opdef import Site, Value, labels, resolve
from irrun.types import ELEMENT_TYPES, type_set
from nets import Net, Ref
from recurrences import attention_of_ssm, attention_of_tokens, delta_rule, windows

__all__ = ["suite"]


@dataclass(frozen=True)
class _Layer:
    """Inputs and attributes of a layer, and the number of its outputs. Integers are constants, floats Parameters."""

    type: str
    inputs: Sequence[Value]
    attributes: dict[str, Any]
    outputs: Sequence[Value]

    def case(self, row: str, verdict: str, clause: str, source: str, expected: Sequence[np.ndarray] = ()) -> Case:
        """Return the case of the layer. ``expected`` are outputs, the first of the layer."""
        net, fed = Net(), []
        refs: list[Ref] = []
        for position, value in enumerate(self.inputs):
            dims = ",".join(map(str, value.shape))
            if value.exact is not None and (value.type.kind != "float" or not value.shape.rank or not value.exact.size):
                refs.append(net.const(value.type.name, dims, value.exact.tobytes()))
                continue
            refs.append(net.parameter(value.type.name, dims, name=f"in{position}"))
            shape = [dim.lo for dim in value.shape]
            fed.append(np.zeros(shape, value.type.dtype) if value.exact is None else value.exact)
        texts: dict[str, Any] = {
            name: str(value).lower() if isinstance(value, bool)
            else ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            for name, value in self.attributes.items()
        }  # fmt: skip
        ports = [(value.type.port_name, ",".join(map(str, value.shape))) for value in self.outputs]
        first = net.add(self.type, refs, ports, opset="extension", name="layer", **texts)
        for number, port in enumerate(ports[: len(expected) or len(ports)]):
            net.result(Ref(first.layer, first.port + number, port))
        step = Step([tensor_record(array) for array in fed], [tensor_record(array) for array in expected])
        types = sorted({value.type.name for value in (*self.inputs, *self.outputs)})
        return Case(
            f"{self.type}-1/{'broken' if clause else 'values'}/{row}/static", f"{self.type}-1", "static", verdict,
            source, net.text, bytes(net.bin), clause, types, [step], *((1e-4, 1e-5) if expected else (0.0, 0.0)),
        )  # fmt: skip


def suite() -> Suite:
    """Return the suite of internal operations."""
    cases = sorted([*_refused(), *_computed()], key=lambda case: case.name)
    operations: dict[str, Operation] = {}
    for type in LAYERS:
        cls = resolve(type, None, "extension")
        assert cls is not None
        allowed = {own for port in cls.inputs for own in type_set(cls.types.get(port.type, port.type))}
        names = [name for name, own in ELEMENT_TYPES.items() if own in allowed and own.kind != "dynamic"]
        operations[f"{type}-1"] = Operation(cls.spec, names, labels(cls), cls.revisions[-1].commit)
    return Suite(operations, {}, cases)


def _refused() -> Iterator[Case]:
    """Yield a case for each row of ``BROKEN``."""
    for row in BROKEN:
        inputs, attributes = LAYERS[row.type]
        given = row.given(inputs)
        layer = _Layer(row.type, given, {**attributes, **row.attributes}, inferred(row.type, inputs, attributes))
        yield layer.case(f"{row.clause}-{row.id}".lower(), "refuse", row.clause, "tests/help/internal_refusals.py")


def _drawn(seed: int) -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.normal(size=shape).astype(np.float32)


def _computed() -> Iterator[Case]:
    """Yield cases whose outputs come from the definitions of ``recurrences``, in f64."""
    for seed in range(4):
        draw, tokens, heads = _drawn(seed), seed + 1, 2 * (1 + seed % 2)
        own = [draw(1, tokens, 2, 3), draw(1, tokens, 2, 3), draw(1, tokens, heads, 4), draw(1, heads, 3, 4)]
        gates = [-abs(draw(1, tokens, heads)), abs(draw(1, tokens, heads))]
        output, states = delta_rule(*(array[0] for array in (*own, *gates)))
        yield _values("GatedDeltaNet", seed, [*own, *gates], [output[None], states[-1][None]])
        tables = [i32(0, tokens), i32(0, 1), i32(0, 2), i32(0), i32(0)]
        state = np.concatenate((own[3], draw(1, heads, 3, 4))).swapaxes(-1, -2).copy()
        rows = [*(array[0] for array in own[:3]), state, *(gate[0] for gate in gates)]
        yield _values("PagedGatedDeltaNet", seed, [*rows, *tables], [output])

        decay, dt, b, x, c = -abs(draw(heads)), abs(draw(1, tokens, heads)), *(draw(1, tokens, *n) for n in ((2, 3), (heads, 4), (2, 3)))  # fmt: skip
        first = draw(1, heads, 4, 3)
        output, states = attention_of_ssm(decay, dt[0], b[0], x[0], c[0], first[0])
        for type in ("SelectiveSSM", "SSM"):
            yield _values(type, seed, [decay, dt, b, x, c, first], [output[None], states[-1][None]])
        table = np.concatenate((first, draw(1, heads, 4, 3)))
        yield _values("PagedSelectiveSSM", seed, [decay, dt[0], b[0], x[0], c[0], table, *tables], [output])

        new, weight, bias, window = draw(tokens, 4), draw(4, 2, 3), draw(4), draw(2, 4, 3)
        output, _ = windows(new, weight, bias, window[0])
        yield _values("PagedCausalConv1D", seed, [new, window, weight, bias, *tables], [output])

        query, key, value = draw(tokens, heads, 6), draw(tokens, 2, 6), draw(tokens, 2, 5)
        output = attention_of_tokens(query, key, value, 0.4)
        caches = [np.zeros((3, 2, 4, n), np.float32) for n in (6, 5)]
        places = [i32(0), i32(0, tokens), i32(2, 0), i32(0, 2)]
        flat = [array.reshape(tokens, -1) for array in (query, key, value)]
        given = [*flat, *caches, *places, *map(np.asarray, OFF.values())]
        yield _values("PagedAttentionExtension", seed, given, [output.reshape(tokens, -1)])

        a, matrices, indices = (
            draw(1, tokens, 4),
            draw(3, 5, 4),
            np.random.default_rng(seed).integers(0, 3, (tokens, 2)),
        )
        products = np.einsum("rk,rsck->src", a[0].astype(np.float64), matrices[indices].astype(np.float64))
        yield _values("GatherMatmul", seed, [a, matrices, indices.astype(np.int32)], [products])


def _values(type: str, seed: int, arrays: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> Case:
    inputs = [Value.of(array) for array in arrays]
    op = made(type, len(inputs), {})
    outputs = infer(op, Site(op.outputs or 1), inputs, {}, contents=False)
    layer = _Layer(type, inputs, {}, outputs)
    numbers = [array.astype(np.float32) for array in expected]
    return layer.case(f"drawn-{seed}", "values", "", "tests/help/recurrences.py, in plain numpy", numbers)
