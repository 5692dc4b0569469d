"""The pytest plugin: the option `--samebits` and the fixture `samebits`."""
