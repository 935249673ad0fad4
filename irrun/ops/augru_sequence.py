"""AUGRUSequence: a sequence through a GRU with attention scores in its update gate.  Spec: internal/augru-sequence."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import GRU, RecurrentSequence


# no opset has this operation: OpenVINO creates it from other operations when it optimises a model
@op("AUGRUSequence", since=5, spec="internal/augru-sequence")
class AUGRUSequence(RecurrentSequence):
    """Compute the hidden state after each element of a sequence, and return all of these states and the last one.

    The order of the gates is z, r, h. The update gate z is multiplied by 1 - ``A``.

    C1  ``activations`` names sigmoid or tanh for each of f and g.
    C2  ``X``, the state, ``W``, ``R`` and ``A`` are 3D, ``B`` is 2D, ``sequence_lengths`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, seq_length, input_size],
        the state [batch_size, num_directions, hidden_size], ``sequence_lengths`` [batch_size],
        ``W`` [num_directions, 3*hidden_size, input_size], ``R`` [num_directions, 3*hidden_size, hidden_size],
        ``B`` [num_directions, 3*hidden_size], ``A`` [batch_size, seq_length, 1]; num_directions is 1.
    C4  ``clip`` is 0 and ``linear_before_reset`` false.
    """

    activations = attr.str("sigmoid,tanh")
    linear_before_reset = attr.bool(False)
    direction = attr.choice("forward", default="forward")
    inputs = ports(X="T", initial_hidden_state="T", sequence_lengths="T_LEN", W="T", R="T", B="T", A="T")
    outputs = 2
    kind = GRU
    has_score = True
