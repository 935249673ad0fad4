"""RNNCell: one element through an RNN.  Spec: sequence/rnn-cell-3."""

from irrun.opdef import attr, op, ports
from irrun.ops._rnn import RNN, Cell


@op("RNNCell", since=1, spec="sequence/rnn-cell-3")
class RNNCell1(Cell):
    """Compute the hidden state after one element.

    C1  ``activations`` names sigmoid, tanh or relu.
    C2  ``X``, the state, ``W`` and ``R`` are 2D, ``B`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, input_size], the state [batch_size, hidden_size],
        ``W`` [hidden_size, input_size], ``R`` [hidden_size, hidden_size], ``B`` [hidden_size].
    """

    activations = attr.str("tanh")
    inputs = ports(X="T", initial_hidden_state="T", W="T", R="T", B="T")
    kind = RNN
