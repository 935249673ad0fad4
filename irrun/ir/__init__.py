"""Read and write OpenVINO IR files, read examples in documents, and cut sub-models."""
