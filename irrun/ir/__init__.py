"""OpenVINO IR as files: reading, writing, examples in documents, and cutting sub-models."""
