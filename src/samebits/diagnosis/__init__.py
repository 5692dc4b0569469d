"""Why two runs differ: which interventions to try, the smallest set that helps, and what to change."""
