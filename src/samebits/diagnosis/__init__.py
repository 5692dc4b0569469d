"""Causes: which interventions to try, the smallest set of them that helps, and what to change."""
