"""AUGRUCell: one element through a GRU with an attention score in its update gate.  Spec: internal/augru-cell."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import GRU, Cell


# no opset has this operation: OpenVINO creates it from other operations when it optimises a model
@op("AUGRUCell", since=5, spec="internal/augru-cell")
class AUGRUCell(Cell):
    """Compute the hidden state after one element.

    The order of the gates is z, r, h. The update gate z is multiplied by 1 - ``A``.

    C1  ``activations`` names sigmoid or tanh for each of f and g.
    C2  ``X``, the state, ``W``, ``R`` and ``A`` are 2D, ``B`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, input_size], the state [batch_size, hidden_size],
        ``W`` [3*hidden_size, input_size], ``R`` [3*hidden_size, hidden_size], ``B`` [3*hidden_size],
        ``A`` [batch_size, 1].
    C4  ``clip`` is 0 and ``linear_before_reset`` false.
    """

    activations = attr.str("sigmoid,tanh")
    linear_before_reset = attr.bool(False)
    inputs = ports(X="T", initial_hidden_state="T", W="T", R="T", B="T", A="T")
    kind = GRU
    has_score = True
