"""The checks: each is a function from the surroundings to the threats that it finds."""
