"""Planning and running a model."""
