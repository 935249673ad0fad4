"""Convolution of several kinds, on data with channels first and channels last."""
