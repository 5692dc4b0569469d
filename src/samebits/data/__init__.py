"""Order and randomness of training data as functions of the seed, the epoch and the sample: docs/data.md."""
