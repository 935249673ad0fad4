"""The values of the reference of a bisection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from irrun.debug.bisection.judging import said
from irrun.debug.inputs import Feeding
from irrun.debug.pairing import Renames, pair_outputs
from irrun.debug.subjects import Subject, model_of
from irrun.diagnostics import EngineError, diagnostic
from irrun.engines import KINDS, Engine, Failure, Input, Loaded, Origin, Outputs, Place, Side, Value
from irrun.engines.kinds import INNER_VALUES
from irrun.engines.places import body_inputs, computing_layers
from irrun.model import Layer, Model

__all__ = ["Truth", "interface", "load_reference"]


class Truth:
    """The values of the reference, for each sample and, in a body, for each iteration.

    ``model`` is that of the candidate. ``samples`` are the inputs as ``feeding`` yields them, ``places`` the places of
    the candidate's values in the reference, and ``renames`` the names in the candidate of outputs of the reference.
    """

    def __init__(
        self,
        feeding: Feeding,
        model: Model,
        samples: Sequence[Mapping[int, np.ndarray]],
        places: Mapping[Place, Place],
        renames: Renames,
    ) -> None:
        self.feeding, self.reference, self.model = feeding, feeding.reference, model
        self.samples, self.places, self.renames = samples, places, renames

    def run(self, places: Sequence[Place]) -> tuple[list[Outputs], dict[Place, list[np.ndarray]]]:
        """Return the outputs of each sample, and the values at ``places``, of all samples one after the other.

        Raises EngineError (IR704) if the reference fails.
        """
        values: dict[Place, list[np.ndarray]] = {place: [] for place in places}

        def keep(value: Value) -> None:
            values[value.place].append(value.array())
            value.drop()

        outputs: list[Outputs] = []
        engine = self.reference.engine
        engine.reset()
        for sample in self.samples:
            outcome = engine.infer(self.feeding.feeds("reference", sample), places, keep)
            if not isinstance(outcome, Outputs):
                raise _unusable(engine, outcome)
            outputs.append(outcome)
        return outputs, values

    def _load(self, *, inner: bool) -> None:
        engine = self.reference.engine
        loaded = engine.load(inner=inner)
        if not isinstance(loaded, Loaded):
            raise _unusable(engine, loaded)

    def of_input(self, parameter: Layer) -> list[np.ndarray]:
        """Return the values of an input of the candidate's model."""
        position = self.model.parameters.index(parameter)
        return [self.feeding.feeds("candidate", sample)[position] for sample in self.samples]

    def outputs(self) -> dict[int, list[np.ndarray]]:
        """Return the values of each output of the candidate's model that the reference has.

        They are those of the reference's model as it is. For an output that the reference does not have, such as a
        dump, they are the values of the layer that computes it. Raises EngineError (IR704) if the reference fails, or
        has no value of any output.
        """
        computed = self._computed()
        values: Mapping[Place, list[np.ndarray]] = {}
        if self.reference.loaded.neutral:
            runs, values = self.run(tuple(dict.fromkeys(computed.values())))
        else:
            self._load(inner=False)
            runs, _ = self.run(())
            self._load(inner=True)
        names = [self.model.result_names(result) for result in self.model.results]
        pairs = pair_outputs(self.reference.loaded.outputs, names, self.renames)
        outputs = {own: [run.outputs[position].array for run in runs] for position, own in pairs.items()}
        found = {at: values[place] for at, place in computed.items() if values.get(place)} | outputs
        if not any(found.values()):
            engine = self.reference.engine.name
            message = f"the reference {engine} has no value of any output of the model: nothing can be compared"
            help = "pass at least one sample, and a reference that runs the same model"
            raise EngineError(diagnostic("IR704", message, help=help))
        return found

    def _computed(self) -> dict[int, Place]:
        """Return the place in the reference of the value of each output, by position, where the sides have a pair."""
        found: dict[int, Place] = {}
        for position, result in enumerate(self.model.results):
            feed = self.model.feeds[result.id][0]
            if feed is not None:
                place = self.places.get(Place(self.model.unique_names[feed[0]], feed[1]))
                if place is not None:
                    found[position] = place
        return found


def load_reference(side: Side, engine: Engine) -> Subject:
    """Load the model of the reference. Raises EngineError (IR704) if the reference fails or shows no inner values."""
    loaded = engine.load(inner=True)
    if not isinstance(loaded, Loaded):
        raise _unusable(engine, loaded)
    if not loaded.places:
        message = f"the reference {engine.name} shows no inner values"
        names = ", ".join(kind.name for kind in KINDS.values() if INNER_VALUES in kind.shows)
        help = f"pass a side whose engine shows them; its kind is one of {names}"
        raise EngineError(diagnostic("IR704", message, help=help))
    return Subject(side, engine, loaded, model_of(side))


def interface(model: Model) -> Loaded:
    """Return the interface of the candidate's model, with all inner values, although its engine may not show them."""
    inputs = (Input(model.input_names(p), str(p.outputs[0].type), str(p.outputs[0].shape)) for p in model.parameters)
    places = {
        Place(name, port): Origin(layer.type, layer.outputs[port].names)
        for name, layer in (
            *((name, layer) for name, _, layer in computing_layers(model)),
            *((name, layer) for name, layer, _, _ in body_inputs(model)),
        )
        for port in range(len(layer.outputs))
    }
    return Loaded(tuple(inputs), tuple(model.result_names(result) for result in model.results), places)


def _unusable(engine: Engine, failure: Failure) -> EngineError:
    message = f"the reference {engine.name} gives no values: {said(failure)}"
    return EngineError(diagnostic("IR704", message, help="choose a reference that runs the model"))
