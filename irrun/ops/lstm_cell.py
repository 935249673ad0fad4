"""LSTMCell: one element through an LSTM.  Spec: sequence/lstm-cell-1."""

from irrun.opdef import attr, op, opt, ports
from irrun.ops._rnn import LSTM, Cell


@op("LSTMCell", since=4, spec="sequence/lstm-cell-1")
class LSTMCell4(Cell):
    """Compute the hidden and the cell state after one element. The order of the gates is f, i, c, o.

    C1  ``activations`` names sigmoid, tanh or relu for each of f, g and h.
    C2  ``X``, both states, ``W`` and ``R`` are 2D, ``B`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, input_size], the states [batch_size, hidden_size],
        ``W`` [4*hidden_size, input_size], ``R`` [4*hidden_size, hidden_size], ``B`` [4*hidden_size].
    """

    activations = attr.str("sigmoid,tanh,tanh")
    inputs = ports(X="T", initial_hidden_state="T", initial_cell_state="T", W="T", R="T", B=opt("T"))
    outputs = 2
    kind = LSTM


@op("LSTMCell", since=1, spec="sequence/lstm-cell-1")
class LSTMCell1(LSTMCell4):
    """Compute the same as LSTMCell-4.

    C1  ``activations`` names sigmoid, tanh or relu for each of f, g and h.
    C2  ``X``, both states, ``W`` and ``R`` are 2D, ``B`` and ``P`` are 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, input_size], the states [batch_size, hidden_size],
        ``W`` [4*hidden_size, input_size], ``R`` [4*hidden_size, hidden_size], ``B`` [4*hidden_size],
        ``P`` [3*hidden_size].
    """

    # OpenVINO writes these two attributes and the input P (peepholes), which are not in the specification, and ignores
    # them
    weights_format = attr.choice("fico", "icof", "ifco", "ifoc", "iofc", default="fico")
    input_forget = attr.bool(False)
    inputs = ports(X="T", initial_hidden_state="T", initial_cell_state="T", W="T", R="T", B=opt("T"), P=opt("T"))
