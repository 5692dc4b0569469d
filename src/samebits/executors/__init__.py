"""Where runs are made: here, in jobs of Slurm, in tasks of Ray, or on the ranks of torchrun."""
