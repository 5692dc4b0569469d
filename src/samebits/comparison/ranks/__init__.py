"""Compares the ranks of one distributed run with each other: their replicas, and how they share the data."""

from samebits.comparison.ranks._verdict import LeftOut as LeftOut
from samebits.comparison.ranks._verdict import LeftOutCode as LeftOutCode
from samebits.comparison.ranks._verdict import RankComparison as RankComparison
from samebits.comparison.ranks._verdict import compare_ranks as compare_ranks
