"""10^5 mutated records, logs and checkpoints, and what each may do at most.

No traceback, no raw control character on a terminal, no more than 2 s for one file, less than 500 MB. The
limits are asserted in `check_limits`; that each is noticed is shown in test_fuzz_few.py.
"""

import pytest
from fuzz_runs import KINDS, check_limits, figures_of

CASES = 5_000
DRAWS = {"records": 40_000, "logs": 20_000, "checkpoints": 40_000}
assert set(DRAWS) == set(KINDS)
assert sum(DRAWS.values()) == 100_000


@pytest.mark.parametrize(
    ("kind", "first"), [(kind, first) for kind, n in DRAWS.items() for first in range(0, n, CASES)]
)
def test_mutations(kind, first, tmp_path):
    check_limits(figures_of(kind, first, CASES, tmp_path), CASES)
