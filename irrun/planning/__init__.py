"""Plan models: choose kernels, fold constants, recognise patterns, choose layouts, and fuse steps."""
