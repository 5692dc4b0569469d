"""Compares two records: the verdict, and the origin of a difference."""

from samebits.comparison.origin import find_origins as find_origins
from samebits.comparison.results import Comparison as Comparison
from samebits.comparison.results import Finding as Finding
from samebits.comparison.results import OriginSearch as OriginSearch
from samebits.comparison.results import Remedy as Remedy
from samebits.comparison.results import Verdict as Verdict
from samebits.comparison.verdict import compare_records as compare_records
from samebits.comparison.verdict import judge as judge
from samebits.recording.distance import Difference as Difference
