"""`Model.readers` is `Model.feeds` backwards."""

import numpy as np

from irrun import build as b


def test_readers_of_a_model() -> None:
    x = b.parameter([4, 3], "f32", name="x")
    first, second = b.Split(x, np.array(0), num_splits=2, name="split")
    y = b.Add(second, first, name="y")
    model = b.model({"y": y, "z": b.Add(first, first, name="z")})
    id = {layer.name: number for number, layer in model.layers.items()}
    assert sorted(model.readers[id["split"], 0]) == sorted([(id["y"], 1), (id["z"], 0), (id["z"], 1)])
    assert model.readers[id["split"], 1] == [(id["y"], 0)]
    assert sorted(model.consumers[id["split"]]) == sorted([id["y"], id["z"]])
    assert {(feed, (layer, n)) for layer, feeds in model.feeds.items() for n, feed in enumerate(feeds)} == {
        (output, reader) for output, readers in model.readers.items() for reader in readers
    }
