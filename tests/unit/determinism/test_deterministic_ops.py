"""An op that raises under deterministic algorithms is explained: site, op, what to use instead."""

from __future__ import annotations

import os
import sys

import pytest
import torch
from control_support import line_of, quiet, run

from samebits.determinism.deterministic_ops import ADVICE, advice_for, explain
from samebits.errors import SamebitsError

# The names at the call sites of `alertNotDeterministic` in the libraries of torch 2.15.0 as shipped.
NAMES = (
    """
max_unpooling2d_forward_out;max_unpooling3d_forward_out;put_;quantized_resize_cpu_;quantized_resize
adaptive_avg_pool2d_backward_cuda;adaptive_avg_pool2d_backward_out_cuda;adaptive_avg_pool3d_backward_cuda
adaptive_avg_pool3d_backward_out_cuda;adaptive_max_pool2d_backward_cuda;avg_pool3d_backward_cuda
max_pool3d_with_indices_backward_cuda;max_pool3d_with_indices_backward_out_cuda
fractional_max_pool2d_backward_cuda;fractional_max_pool3d_backward_cuda;fractional_max_pool3d_backward_out_cuda
embedding_bag_backward_cuda_max;grid_sampler_2d_backward_cuda;grid_sampler_3d_backward_cuda
cudnn_grid_sampler_backward;index_reduce_cuda;ctc_loss_backward_gpu;nll_loss2d_forward_out_cuda_template
reflection_pad1d_backward_out_cuda;reflection_pad3d_backward_out_cuda;replication_pad1d_backward_cuda
replication_pad2d_backward_cuda;replication_pad2d_backward_out_cuda;replication_pad3d_backward_cuda
replication_pad3d_backward_out_cuda;scatter_cuda_;scatter_reduce_cuda_kernel;scatter_reduce_cuda_prod_
_histc_cuda with floating point input;_bincount_cuda;median CUDA with indices output
upsample_linear1d_backward_out_cuda;upsample_bilinear2d_backward_out_cuda;upsample_bicubic2d_backward_out_cuda
upsample_trilinear3d_backward_out_cuda;upsample_bilinear2d_aa_backward_out_cuda
upsample_bicubic2d_aa_backward_out_cuda;embedding_dense_backward_mps;_embedding_bag_dense_backward_mps
_embedding_bag_per_sample_weights_backward_mps;grid_sampler_2d_backward_mps;grid_sampler_3d_backward_mps
index_reduce_mps;index_put_with_accumulate_mps;avg_pool3d_backward;scatter_reduce_mps;kthvalue MPS
max_pool2d_backward_mps;upsample_bilinear2d_backward
""".replace("\n", ";")
    .strip(";")
    .split(";")
)


@pytest.mark.parametrize("name", NAMES)
def test_every_op_that_raises_has_advice(name):
    advice = advice_for(name)

    assert advice is not None
    assert advice.backward == ("_backward" in name)
    assert len(advice.instead) > 10


def test_every_advice_is_for_some_op():
    assert {advice.op for advice in ADVICE} == {advice_for(name).op for name in NAMES}


@pytest.fixture
def older_torch(monkeypatch):
    """A torch that takes no kernels of ours, as before 2.9: it refuses what control else computes."""
    monkeypatch.delattr(torch.library, "get_kernel", raising=False)


def unpool2d():
    torch.nn.functional.max_unpool2d(torch.ones(1, 1, 2, 2), torch.arange(4).reshape(1, 1, 2, 2), 2)


def unpool3d():
    torch.nn.functional.max_unpool3d(torch.ones(1, 1, 2, 2, 2), torch.arange(8).reshape(1, 1, 2, 2, 2), 2)


def put():
    torch.zeros(4).put_(torch.tensor([0]), torch.tensor([1.0]))


def resize():
    torch.quantize_per_tensor(torch.ones(4), 0.1, 0, torch.qint8).resize_(8)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize(
    ("call", "op", "instead"),
    [
        (unpool2d, "MaxUnpool1d or MaxUnpool2d", "scatter_add"),
        (unpool3d, "MaxUnpool3d", "interpolate"),
        (put, "Tensor.put_", "accumulate=True"),
        (resize, "Tensor.resize_ of a quantized tensor", "quantize_per_tensor"),
    ],
)
def test_what_raises_on_the_cpu_is_explained(call, op, instead, older_torch):
    with pytest.raises(SamebitsError) as caught, quiet(seed=0):
        call()

    message = str(caught.value)
    assert caught.value.slug == "nondeterministic-op"
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert message.startswith(op)
    assert f"{os.path.abspath(__file__)}:{call.__code__.co_firstlineno + 1} has no" in message
    assert instead in message
    assert "\n" not in message
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_line_may_be_allowed():
    with quiet(seed=0), quiet(all_switches=False, switches={"deterministic-algorithms": "off"}):
        put()


def test_an_op_that_is_not_known_is_explained_all_the_same():
    error = RuntimeError("frobnicate_cuda does not have a deterministic implementation, but you set '...'")

    assert explain(error).startswith(
        "frobnicate_cuda has no deterministic implementation, and samebits does not"
    )


def test_a_cause_is_looked_at_and_other_errors_are_not_explained():
    text = "put_ does not have a deterministic implementation, but you set x"
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = RuntimeError(text)

    assert explain(wrapped).startswith("Tensor.put_ (put_) has no")
    assert explain(RuntimeError("put_ failed")) is None
    assert explain(KeyError(text)) is None


def test_other_errors_leave_a_block_as_they_are():
    with pytest.raises(ZeroDivisionError), quiet(seed=0):
        _ = 1 / 0


def test_the_hook_is_taken_away_again():
    before = sys.excepthook
    outer, inner = quiet(seed=0), quiet(seed=0)
    outer.restore()
    inner.restore()

    assert sys.excepthook is before


def test_a_script_that_ends_by_it_gets_the_line_after_its_traceback(tmp_path):
    result = run(
        tmp_path,
        """
        import torch
        vars(torch.library).pop("get_kernel", None)  # as before torch 2.9
        from samebits.determinism.context import deterministic
        control = deterministic(seed=0, switches={"address-layout": "leave"})
        pooled, where = torch.ones(1, 1, 2, 2), torch.arange(4).reshape(1, 1, 2, 2)
        def upsample():
            return torch.nn.functional.max_unpool2d(pooled, where, 2)
        upsample()
        """,
        PYTHONHASHSEED="0",
        OMP_DYNAMIC="FALSE",
        MKL_DYNAMIC="FALSE",
    )
    lines = result.stderr.splitlines()
    line = line_of(tmp_path, "return torch.nn")

    assert result.returncode == 1
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("samebits: MaxUnpool1d or MaxUnpool2d (max_unpooling2d_forward_out) at ")
    assert f"script.py:{line} has no deterministic implementation; use this instead: " in lines[-1]


def test_an_error_in_backward_names_the_line_that_went_backward(older_torch):
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            torch._C._nn.max_unpool2d(torch.ones(1, 1, 2, 2), torch.arange(4).reshape(1, 1, 2, 2), (4, 4))

    loss = Raises.apply(torch.ones(1, requires_grad=True)).sum()
    with pytest.raises(SamebitsError, match="MaxUnpool1d") as caught, quiet(seed=0):
        loss.backward()

    assert os.path.abspath(__file__) in str(caught.value)
