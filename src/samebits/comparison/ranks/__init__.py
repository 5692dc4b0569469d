"""Compares the ranks of one distributed run with each other: their replicas, and how they share the data."""

from samebits.comparison.ranks.compare import compare_ranks as compare_ranks
from samebits.comparison.ranks.results import RankComparison as RankComparison
