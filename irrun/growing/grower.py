"""Grow graphs: from the declarations of the operations, and as chains of what networks consist of."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from irrun.diagnostics import IrrunError
from irrun.growing.bodies import BODIES
from irrun.growing.chain import Axis, Chain, Tensor, fixed
from irrun.growing.choices import Dice
from irrun.growing.converted import CONVERTED
from irrun.growing.drafts import MAX_ELEMENTS, STRUCTURE, Draft, Port, random_contents, versions
from irrun.growing.graphs import Graph, Node, Ref, Stored
from irrun.growing.habits import is_computed, is_weight, is_written, weight
from irrun.growing.idioms import IDIOMS
from irrun.growing.internal import LAYERS as INTERNAL
from irrun.growing.internal import add_internal
from irrun.growing.layers import LAYERS
from irrun.growing.solver import Solver
from irrun.growing.starts import STARTS
from irrun.inference.layer import input_at
from irrun.opdef import Op
from irrun.types import ELEMENT_TYPES

__all__ = ["CALLS", "CYCLE", "Grower", "add_inputs", "add_layers", "unread"]

CALLS: Final = "AAABBCA"
"""The shapes of each call of a dynamic model, a letter for each set: the first comes three times,
so that a plan of its own is made."""
_KINDS: Final = ("declared", "chain", "declared", "start")
"""How the graph of each number is grown, in turn."""
_INTERNAL_EVERY: Final = 20
"""One graph of so many is a layer of an internal operation of OpenVINO, unless an engine reads the models: OpenVINO
reads few of these types from a file."""
CYCLE: Final = len(_KINDS) * len(STARTS)
"""The number of graphs among which each start occurs once."""
_MAX_DECLARED_LAYERS: Final = 6
"""The most layers of a graph that is grown from declarations: few, because each may be refused by an engine."""
_MAX_CHAIN_LAYERS: Final = 12
"""The most layers of a chain."""
_MAX_STARTED_ELEMENTS: Final = 1 << 20
"""The most elements of a tensor in a graph that begins with a start: its kernels have thresholds."""
_FREQUENT: Final = {True: 0.8, False: 0.5}
"""The share of layers that are drawn by how often networks use them, in usual graphs and in others. The other layers
are those drawn least often."""
_UNUSUAL_SHARE: Final = 0.5
"""The share of graphs from declarations with any element types, attributes left out, and settings as inputs."""
_UNUSUAL_SHARE_FOR_ENGINES: Final = 0.06
"""The same for graphs that an engine shall run: it refuses most of them."""
_COMPUTED_SHARE: Final = 0.15
"""The share of settings that are inputs of the model, where networks compute them."""
_SHOWN: Final = 0.1
"""The share of tensors that are outputs although a layer reads them."""
_SPECIAL_SHARE: Final = 0.15
"""The share of graphs whose inputs hold special numbers."""
_MAX_TRIALS: Final = 6
"""The most sets of shapes that are tried for the calls of a chain."""
_ASCENDING: Final = {"Bucketize": 1, "SearchSorted": 0}
"""The input of an operation that must be in ascending order."""


class Grower:
    """Grows one graph after the other; each depends on the seed, on its number, and on those that were grown before.

    ``reached`` counts the versions of operations in the graphs. With ``for_engine``, few graphs hold what networks do
    not write, and none has a parameter of unknown rank.
    """

    def __init__(self, seed: int, *, for_engine: bool = False) -> None:
        self.seed, self.unranked = seed, not for_engine
        self.unusual_share = _UNUSUAL_SHARE_FOR_ENGINES if for_engine else _UNUSUAL_SHARE
        self.solver = Solver(random.Random(seed))
        self.reached: Counter[str] = Counter()
        known = [(name, cls) for name, cls in sorted(versions().items()) if cls.type not in STRUCTURE]
        self.names = {usual: [name for name, cls in known if not usual or is_written(cls)] for usual in (True, False)}
        """The versions that usual graphs may have, and those of the others."""

    def grow(self, number: int) -> Graph:
        """Return the graph of a number."""
        if self.unranked and number % _INTERNAL_EVERY == 0:
            graph = self.grow_internal(number, list(INTERNAL)[number // _INTERNAL_EVERY % len(INTERNAL)])
            self.reached.update(graph.versions())
            return graph
        match _KINDS[number % len(_KINDS)]:
            case "declared":
                graph = self.grow_declared(number)
            case "chain":
                graph = self.grow_chain(number)
            case _:
                graph = self.grow_start(number, STARTS[number // len(_KINDS) % len(STARTS)])
        self.reached.update(graph.versions())
        return graph

    def grow_declared(self, number: int) -> Graph:
        """Return a graph whose layers are solved from their declarations. It may be refused when it runs."""
        rng, chain = self._begin(number)
        graph = chain.graph
        self._grow_declared(graph, chain, rng)
        shown = unread(graph, lambda _: rng.random() < _SHOWN)
        graph.results = [ref for ref in shown if not graph.nodes[ref.node].is_input]
        _open_dims(graph, rng, unranked=self.unranked)
        return graph

    def grow_internal(self, number: int, type: str) -> Graph:
        """Return a graph of one layer of an internal operation, some of whose dims are open."""
        rng, chain = self._begin(number)
        add_internal(chain.graph, type, chain.numbers)
        chain.graph.results = unread(chain.graph)
        _open_dims(chain.graph, rng, unranked=self.unranked)
        return chain.graph

    def grow_chain(self, number: int, layers: int | None = None) -> Graph:
        """Return a valid graph of what networks consist of, with so many layers or groups of them."""
        rng, chain = self._begin(number)
        add_inputs(chain, rng.choice((1, 1, 2, 3)), dynamic=rng.random() < 0.6)
        add_layers(chain, _ALL, layers or rng.randrange(1, _MAX_CHAIN_LAYERS + 1))
        return self._finish(chain, rng, lambda _: rng.random() < _SHOWN)

    def grow_start(self, number: int, start: Callable[[Chain], None]) -> Graph:
        """Return a valid graph that reaches certain kernels."""
        rng, chain = self._begin(number)
        start(chain)
        return self._finish(chain, rng)  # another output may keep a kernel from being reached

    def _begin(self, number: int) -> tuple[random.Random, Chain]:
        """Return the random generator of a number, and an empty chain."""
        rng = random.Random(f"{self.seed}/{number}")
        seed = rng.getrandbits(32)
        graph = Graph(seed, special=rng.random() < _SPECIAL_SHARE, odd=bool(seed & 1))
        return rng, Chain(graph, Dice(rng), np.random.default_rng(rng.getrandbits(64)))

    def _finish(self, chain: Chain, rng: random.Random, shows: Callable[[Ref], bool] = lambda _: False) -> Graph:
        """Return the graph of a chain, with outputs and calls."""
        chain.graph.valid = True
        chain.graph.results = unread(chain.graph, shows)
        _choose_sizes(chain.graph, rng, chain.sizes, unranked=self.unranked)
        return chain.graph

    def _grow_declared(self, graph: Graph, chain: Chain, rng: random.Random) -> None:
        """Put layers into a graph that are solved from their declarations and, now and then, those of networks."""
        self.solver.rng = rng
        usual = rng.random() >= self.unusual_share
        hosts: list[Tensor] = []
        built: dict[Ref, Any] = {}
        for _ in range(rng.randrange(1, _MAX_DECLARED_LAYERS + 1)):
            before = len(graph.nodes)
            host = rng.choice(hosts) if hosts and rng.random() < 0.8 else None
            roll = rng.random()
            if host is not None and roll < 0.3:
                chain.tensors = [host]
                add_layers(chain, BODIES if roll < 0.12 else _PLAIN, 1)
                _drop_unless_built(graph, built, before)
            else:
                self._solve_layer(graph, built, host, rng, usual=usual)
            for number in range(before, len(graph.nodes)):
                node = graph.nodes[number]
                if not node.is_input and (node.cls is None or node.cls.pure):
                    hosts += _readable([Ref(number, port) for port in range(node.outputs)], built)

    def _solve_layer(
        self, graph: Graph, built: dict[Ref, Any], host: Tensor | None, rng: random.Random, *, usual: bool
    ) -> None:
        names = self.names[usual]
        if rng.random() < _FREQUENT[usual]:
            (name,) = rng.choices(names, [weight(versions()[name].type) for name in names])
        else:
            name = min(rng.sample(names, 12), key=lambda name: self.reached[name])
        cls = versions()[name]
        draft = None
        if host is not None and cls.inputs:
            draft = self.solver.solve(cls, Port(host.type, host.dims, fixed=True), usual=usual)
        if draft is None:  # it gets inputs of its own
            host = None
            draft = self.solver.solve(cls, usual=usual)
        if draft is not None:
            before = len(graph.nodes)
            put_draft(graph, draft, None if host is None else host.ref, rng, usual=usual)
            _drop_unless_built(graph, built, before)  # contents that the draft knew may be those of a Parameter


_PLAIN: Final = (*LAYERS, *CONVERTED, *IDIOMS)
_ALL: Final = (*LAYERS, *LAYERS, *CONVERTED, *IDIOMS, *IDIOMS, *IDIOMS, *BODIES, *BODIES)


def _readable(refs: Sequence[Ref], built: Mapping[Ref, Any]) -> list[Tensor]:
    """Return the outputs that later layers may read: those of static shapes that are not large."""
    made = []
    for ref in refs:
        value = built[ref].value
        shape = value.shape.static
        if shape is not None and np.prod(shape, dtype=np.int64) <= MAX_ELEMENTS:
            made.append(Tensor(ref, value.type.name, fixed(*shape)))
    return made


def _drop_unless_built(graph: Graph, built: dict[Ref, Any], before: int) -> None:
    """Build the nodes from ``before`` on, and remove them if that fails."""
    try:
        graph.extend(built, before)
    except (IrrunError, ValueError):
        del graph.nodes[before:]
        graph.open = {n: axes for n, axes in graph.open.items() if n < before}


# ---------------------------------------------------------------------------------------------
# chains


def add_inputs(chain: Chain, count: int, *, dynamic: bool, bounded: bool = False) -> None:
    """Put Parameters into a chain. If ``dynamic``, some dims are open, with bounds if ``bounded``."""
    choices, first = chain.choices, ()
    for position in range(count):
        if position and choices.chance():
            axes = first  # so that they meet
        else:
            sizes = [choices.pick((1, 2, 3, 4, 5, 8)) for _ in range(choices.pick((1, 2, 3, 3, 4, 4, 4, 0)))]
            axes = tuple(Axis(size, dynamic and choices.chance()) for size in sizes)
        first = first or axes
        open = [n for n, axis in enumerate(axes) if axis.open]
        bounds = {n: choices.pick(_bounds(axes[n].size)) for n in open} if bounded else {}
        chain.parameter(axes, choices.pick(chain.types), bounds=bounds)


def _bounds(size: int) -> tuple[str, ...]:
    """Return texts of an open dim that allow a size."""
    return "?", f"{max(size - 1, 0)}..{size + 2}", f"..{size}", f"{size}.."


def add_layers(chain: Chain, layers: Sequence[Callable[[Chain], None]], count: int) -> None:
    """Put so many layers, or groups of them, into a chain.

    Not every layer suits the tensors that there are: the first from a drawn one on that does is added.
    """
    for _ in range(count):
        before, first = len(chain.outputs), chain.choices.integer(0, len(layers) - 1)
        for add in (*layers[first:], *layers[:first]):
            add(chain)
            if len(chain.outputs) > before:
                break


def unread(graph: Graph, shows: Callable[[Ref], bool] = lambda _: False) -> list[Ref]:
    """Return the outputs that no layer reads, and those of layers that ``shows`` accepts."""
    read = {ref for node in graph.nodes for ref in node.inputs}
    outputs = [Ref(number, port) for number, node in enumerate(graph.nodes) for port in range(node.outputs)]
    return [
        ref for ref in outputs if graph.nodes[ref.node].kind != "constant"
        and (ref not in read or (not graph.nodes[ref.node].is_input and shows(ref)))
    ]  # fmt: skip


def _choose_sizes(graph: Graph, rng: random.Random, sizes: Sequence[int], *, unranked: bool) -> None:
    """Choose the shapes of several calls: other sizes of the open dims, if all layers accept them."""
    base = {n: graph.nodes[n].shape for n in graph.parameters}
    found = sorted({base[n][axis] for n, axes in graph.open.items() for axis in axes})
    sets = [base]
    for _ in range(_MAX_TRIALS if found else 0):
        new = {size: rng.choice(sizes) for size in found}
        shapes = {
            n: tuple(new[d] if axis in graph.open.get(n, ()) else d for axis, d in enumerate(shape))
            for n, shape in base.items()
        }
        if len(sets) < 3 and shapes not in sets and graph.accepts(shapes, _MAX_STARTED_ELEMENTS):
            sets.append(shapes)
    _set_calls(graph, sets)
    if not found:
        return
    if rng.random() < 0.3:
        _bound_dims(graph)
    elif unranked and rng.random() < 0.15:
        graph.unranked = frozenset(rng.sample(sorted(graph.open), 1))
        if not _builds(graph):
            graph.unranked = frozenset()


def _set_calls(graph: Graph, sets: Sequence[dict[int, tuple[int, ...]]]) -> None:
    """Set the shapes of the calls. A model with one set is called twice, so that state is read."""
    letters = CALLS if graph.is_dynamic() else "AA"
    graph.calls = [dict(sets[min("ABC".index(letter), len(sets) - 1)]) for letter in letters]


def _bound_dims(graph: Graph) -> None:
    """Let open dims have the sizes of the calls, and those in between."""
    for n, axes in graph.open.items():
        sizes = {axis: [call[n][axis] for call in graph.calls] for axis in axes}
        bounds = {axis: f"{min(found)}..{max(found)}" for axis, found in sizes.items()}
        graph.nodes[n] = replace(graph.nodes[n], bounds=bounds)


def _builds(graph: Graph) -> bool:
    """Return whether the dynamic form of a model can be built."""
    try:
        graph.built(dynamic=True)
    except (IrrunError, ValueError):
        return False
    return True


# ---------------------------------------------------------------------------------------------
# drafts


def put_draft(graph: Graph, draft: Draft, host: Ref | None, rng: random.Random, *, usual: bool = True) -> None:
    """Add a layer and its inputs: parameters, constants, and compressed constants."""
    cls, inputs = draft.cls, []
    for position, port in enumerate(draft.ports):
        if position == 0 and host is not None:
            inputs.append(host)
            continue
        inputs.append(Ref(len(graph.nodes)))
        node = _input(port, position, rng, cls, usual=usual)
        if _ASCENDING.get(cls.type) == position:
            node = replace(node, data=None if node.data is None else np.sort(node.data), ascending=True)
        graph.nodes.append(node)
    graph.nodes.append(Node("layer", cls, dict(draft.attributes), inputs, draft.outputs))


def _input(port: Port, position: int, rng: random.Random, cls: type[Op], *, usual: bool) -> Node:
    type = ELEMENT_TYPES[port.type]
    stored_only = type.is_storage or (type.bits < 8 and type.kind not in ("boolean", "string"))
    declared = input_at(cls.inputs, position)
    assert declared is not None
    computed = _COMPUTED_SHARE if not usual or is_computed(cls, declared) else 0.0
    fixed = port.data is not None and rng.random() >= computed
    always = usual and is_weight(declared)
    is_constant = position > 0 and port.data is None and type.kind == "float" and (always or rng.random() < 0.4)
    if not (fixed or is_constant or stored_only):
        return Node("parameter", type=port.type, shape=port.shape, data=port.data, domain=port.domain)
    data = random_contents(port, np.random.default_rng(rng.getrandbits(32)), 1.0)
    stored = None
    if is_constant and not port.domain and port.type in ("f32", "f16") and len(port.shape) >= 1 and rng.random() < 0.4:
        stored = Stored(rng.choice(("u8", "i8", "u4", "i4")), rng.randrange(len(port.shape)), rng.random() < 0.6)
    return Node("constant", type=port.type, shape=port.shape, data=data, stored=stored)


def _open_dims(graph: Graph, rng: random.Random, *, unranked: bool) -> None:
    """Open dims, and choose the shapes of several calls: others for dims that are equal, if all layers accept them."""
    base = {n: graph.nodes[n].shape for n in graph.parameters}
    graph.open = {}
    _set_calls(graph, [base])
    if rng.random() < 0.4 or graph.is_stateful():
        return
    free = [n for n in graph.parameters if graph.nodes[n].data is None]
    dims = sorted({dim for n in free for dim in graph.nodes[n].shape})
    sets = [base]
    opened: set[int] = set()
    for dim in rng.sample(dims, min(len(dims), 2)):
        for other in rng.sample((0, 1, 2, 3, 5, 6), 3):
            shapes = {
                n: tuple(other if d == dim else d for d in shape) if n in free else shape for n, shape in base.items()
            }
            if other != dim and len(sets) < 3 and graph.accepts(shapes):
                sets.append(shapes)
                opened.add(dim)
    graph.open = {
        n: frozenset(i for i, d in enumerate(base[n]) if d in opened or rng.random() < 0.15) for n in free
    }  # fmt: skip
    graph.unranked = frozenset(n for n in free if unranked and rng.random() < 0.05)
    if _builds(graph):
        _set_calls(graph, sets)
    else:  # the values of an unknown dim may be needed
        graph.open, graph.unranked = {}, frozenset()
