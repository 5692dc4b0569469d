"""The fake device in a process that has torch."""
