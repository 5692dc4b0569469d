"""Every name of torch that samebits uses and PyTorch does not document."""
