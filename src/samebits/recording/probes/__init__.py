"""Probes: each watches one part of torch, Python or the system and tells the recorder."""
