"""Other packages' interfaces over irrun, for tests."""
