"""Models that are built from operations, and what is put before and behind a model."""
