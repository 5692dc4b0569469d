"""10^5 mutated records and checkpoints: no traceback, no hang, bounded memory, nothing raw on a terminal."""

import pytest
from fuzz_runs import check_cases

CASES = 5_000


@pytest.mark.parametrize("first", range(0, 50_000, CASES))
@pytest.mark.parametrize("kind", ["records", "checkpoints"])
def test_mutations(kind, first, tmp_path):
    check_cases(kind, first, CASES, tmp_path)
