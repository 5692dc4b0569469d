"""Diagnosis of a difference: which interventions to try, the smallest set that helps, and what to change."""
