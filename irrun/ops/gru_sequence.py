"""GRUSequence: a sequence of elements through a GRU.  Spec: sequence/gru-sequence-5."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import GRU, RecurrentSequence


@op("GRUSequence", since=5, spec="sequence/gru-sequence-5")
class GRUSequence5(RecurrentSequence):
    """Compute the hidden state after each element of a sequence, and return all of these states and the last one.

    The order of the gates is z, r, h. ``sequence_lengths`` holds the length of each sequence of the batch. The hidden
    states beyond this length are zeros.

    C1  ``activations`` names sigmoid, tanh or relu for each of f and g.
    C2  ``X``, the state, ``W`` and ``R`` are 3D, ``B`` is 2D, ``sequence_lengths`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, seq_length, input_size],
        the state [batch_size, num_directions, hidden_size], ``sequence_lengths`` [batch_size],
        ``W`` [num_directions, 3*hidden_size, input_size], ``R`` [num_directions, 3*hidden_size, hidden_size],
        ``B`` [num_directions, 3*hidden_size] or, with ``linear_before_reset``, [num_directions, 4*hidden_size];
        num_directions is 2 if ``direction`` is bidirectional, else 1.
    """

    activations = attr.str("sigmoid,tanh")
    linear_before_reset = attr.bool(False)
    inputs = ports(X="T", initial_hidden_state="T", sequence_lengths="T_LEN", W="T", R="T", B="T")
    outputs = 2
    kind = GRU
