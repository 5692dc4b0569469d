"""Recording of a run: the runner, the probes, and the record that they fill."""
