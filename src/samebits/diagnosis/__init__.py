"""Causes of a difference: interventions to try, the smallest set that helps, remedies and patches."""
