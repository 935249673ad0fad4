"""Arrays in files: inputs are read from .npy, .npz and pictures, and outputs are written to .npy and .npz."""
