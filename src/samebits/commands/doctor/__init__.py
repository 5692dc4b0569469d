"""Threats to each promise on this machine and in this environment, with remedies."""
