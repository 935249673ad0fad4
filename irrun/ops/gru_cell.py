"""GRUCell: one element through a GRU.  Spec: sequence/gru-cell-3."""

from irrun.opdef import attr, op, opt, ports
from irrun.ops._rnn import GRU, Cell


@op("GRUCell", since=3, spec="sequence/gru-cell-3")
class GRUCell3(Cell):
    """Compute the hidden state after one element. The order of the gates is z, r, h.

    C1  ``activations`` names sigmoid, tanh or relu for each of f and g.
    C2  ``X``, the state, ``W`` and ``R`` are 2D, ``B`` is 1D.
    C3  Dims with the same name are equal: ``X`` [batch_size, input_size], the state [batch_size, hidden_size],
        ``W`` [3*hidden_size, input_size], ``R`` [3*hidden_size, hidden_size], ``B`` [3*hidden_size] or,
        with ``linear_before_reset``, [4*hidden_size].
    """

    activations = attr.str("sigmoid,tanh")
    linear_before_reset = attr.bool(False)
    inputs = ports(X="T", initial_hidden_state="T", W="T", R="T", B=opt("T"))
    kind = GRU
