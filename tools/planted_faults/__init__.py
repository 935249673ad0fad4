"""Plant faults into irrun itself, and see whether ``irrun fuzz`` against an engine finds each of them."""
