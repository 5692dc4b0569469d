"""The command line: one file per command, each class docstring is its help."""
