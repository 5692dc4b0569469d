"""Linear algebra against torch."""

from __future__ import annotations

import pytest
import torch
from opinfo import check_op

from samebits.portable._dispatch import PortableMode

OPS = ["linalg.cholesky", "linalg.solve_triangular", "linalg.lu_factor", "linalg.solve", "linalg.inv"]
OPS += [
    "linalg.det",
    "linalg.slogdet",
    "cholesky_solve",
    "cholesky_inverse",
    "linalg.cross",
    "linalg.lu",
    "cholesky",
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_ops_agree_with_torch(name, dtype):
    check_op(name, dtype, limit=8)


def test_a_matrix_that_is_not_positive_is_refused():
    for factor in (torch.linalg.cholesky, torch.cholesky):
        with PortableMode(), pytest.raises(torch.linalg.LinAlgError):
            factor(-torch.eye(3))
