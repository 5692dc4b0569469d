"""DataLoaders of the script under control: the order of samples, their randomness, the workers."""
