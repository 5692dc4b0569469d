"""The checks: each is a function from the environment snapshot to threats."""
