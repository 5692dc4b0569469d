"""Where runs are made: here, in jobs of Slurm, or in tasks of Ray."""
