"""Compares the ranks of one distributed run with each other: their replicas, and how they share the data."""

from samebits.comparison.ranks._verdict import compare_ranks as compare_ranks
from samebits.comparison.ranks.facts import RankComparison as RankComparison
