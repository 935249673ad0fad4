"""Networks whose file rounds values to integers (FakeQuantize), computed in these integers."""
