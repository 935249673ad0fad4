"""Find the layer at which a run goes wrong."""
