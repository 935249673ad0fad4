"""Show models, and figures of their layers, in Google's Model Explorer. ``main`` is the adapter that it loads."""

from irrun.explorer.graphs import graphs
from irrun.explorer.node_data import node_data

__all__ = ["graphs", "node_data"]
