"""LSTMSequence: a sequence of elements through an LSTM.  Spec: sequence/lstm-sequence-5."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import LSTM, RecurrentSequence


@op("LSTMSequence", since=5, spec="sequence/lstm-sequence-5")
class LSTMSequence5(RecurrentSequence):
    """Compute the states after each element of a sequence. The outputs are all hidden states and both last states.

    The order of the gates is f, i, c, o. ``sequence_lengths`` holds the length of each sequence of the batch. Hidden
    states beyond it are zeros.

    C1  ``activations`` names sigmoid, tanh or relu for each of f, g and h.
    C2  ``X``, both states, ``W`` and ``R`` are 3D, ``B`` is 2D, ``sequence_lengths`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, seq_length, input_size],
        the states [batch_size, num_directions, hidden_size], ``sequence_lengths`` [batch_size],
        ``W`` [num_directions, 4*hidden_size, input_size], ``R`` [num_directions, 4*hidden_size, hidden_size],
        ``B`` [num_directions, 4*hidden_size]; num_directions is 2 if ``direction`` is bidirectional, else 1.
    """

    activations = attr.str("sigmoid,tanh,tanh")
    inputs = ports(
        X="T", initial_hidden_state="T", initial_cell_state="T", sequence_lengths="T_LEN", W="T", R="T", B="T"
    )
    outputs = 3
    kind = LSTM
