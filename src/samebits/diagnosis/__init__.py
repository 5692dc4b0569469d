"""Why two runs differ: which pins to try, the smallest set of them that helps, and what to change."""
