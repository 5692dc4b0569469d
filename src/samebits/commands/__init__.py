"""The commands that are more than a verification: doctor, cost, spread, resume-check."""
