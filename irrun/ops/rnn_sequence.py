"""RNNSequence: a sequence of elements through an RNN.  Spec: sequence/rnn-sequence-5."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import RNN, RecurrentSequence


@op("RNNSequence", since=5, spec="sequence/rnn-sequence-5")
class RNNSequence5(RecurrentSequence):
    """Compute the hidden state after each element of a sequence, and return all of these states and the last one.

    ``sequence_lengths`` holds the length of each sequence of the batch. Hidden states beyond it are zeros.

    C1  ``activations`` names sigmoid, tanh or relu.
    C2  ``X``, the state, ``W`` and ``R`` are 3D, ``B`` is 2D, ``sequence_lengths`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, seq_length, input_size],
        the state [batch_size, num_directions, hidden_size], ``sequence_lengths`` [batch_size],
        ``W`` [num_directions, hidden_size, input_size], ``R`` [num_directions, hidden_size, hidden_size],
        ``B`` [num_directions, hidden_size]; num_directions is 2 if ``direction`` is bidirectional, else 1.
    """

    activations = attr.str("tanh")
    inputs = ports(X="T", initial_hidden_state="T", sequence_lengths="T_LEN", W="T", R="T", B="T")
    outputs = 2
    kind = RNN
