"""Lock files: the digests of a run as reviewable text, and who is to blame when they do not come back."""
