"""Many inputs, many models, many processes: batches, trees of models, and the cache of their results."""
