"""An operation returns different bits for the same inputs."""

from __future__ import annotations

from samebits.causes.specification import (
    Advice,
    Cause,
    InterventionEvidence,
    OriginKind,
    PatchRule,
    Specification,
    nearby,
)
from samebits.switches.vector_math import FUNCTIONS

_INTERVENTION = "deterministic"
# Ops of `samebits.deterministic_kernels` that torch refuses; tests/unit/deterministic_kernels compares.
_KERNELS_OF_OURS = (
    "_?adaptive_(avg|max)_pool[23]d_backward|avg_pool3d_backward|fractional_max_pool[23]d_backward|"
    "max_pool3d_with_indices_backward|max_unpool[23]d|(cudnn_)?grid_sampler(_[23]d)?_backward|"
    "_ctc_loss_backward|nll_loss2d_forward|reflection_pad[13]d_backward|replication_pad[123]d_backward|"
    "upsample_linear1d_backward|_upsample_(bilinear|bicubic)2d_aa_backward|index_reduce|"
    "scatter_?[.](value_)?reduce|bincount|histc|median|nanmedian|kthvalue"
)

SPECIFICATION = Specification(
    cause=Cause.NONDETERMINISTIC_KERNEL,
    sentence="ran {op}, which gave other bits for the same inputs",
    sentence_without_op="is where results of kernels that are not recorded one by one first differ",
    interventions=((_INTERVENTION,), ("threads",)),
    evidence=(
        InterventionEvidence(_INTERVENTION),
        InterventionEvidence("threads", 1),
        InterventionEvidence("eager", acts=False),
    ),
    advice=(
        Advice(
            "run the script under control, with `samebits run --deterministic` or "
            "`samebits.deterministic()`: it has a deterministic kernel for this op, from torch 2.9 on. torch "
            "itself has none on CUDA: `torch.use_deterministic_algorithms(True)` makes it raise an error",
            (_INTERVENTION,),
            f"aten::({_KERNELS_OF_OURS})",
        ),
        Advice(
            "call `torch.use_deterministic_algorithms(True)` at the start of the script; it has a "
            "deterministic kernel for this op",
            (_INTERVENTION,),
            "aten::(index_add|index_put|_index_put_impl|put|scatter_add|scatter_reduce|"
            "index_copy|cumsum|embedding_dense_backward|index)",
        ),
        Advice(
            "call `torch.use_deterministic_algorithms(True)` at the start of the script, and call "
            "`torch.nn.functional.interpolate` itself: it picks a deterministic way when called, but "
            "for 'linear' and antialias",
            (_INTERVENTION,),
            "aten::upsample",
        ),
        Advice(
            "call `torch.use_deterministic_algorithms(True)` at the start of the script, and on CUDA "
            "set CUBLAS_WORKSPACE_CONFIG=:4096:8 before the first product",
            (_INTERVENTION, "threads"),
            "aten::(mm|addmm|bmm|baddbmm|matmul|linear)",
        ),
        Advice(
            "set CUBLAS_WORKSPACE_CONFIG=:4096:2; torch has no other switch for recurrent layers of cuDNN",
            (_INTERVENTION,),
            "aten::_cudnn_rnn",
        ),
        Advice(
            "call the function on one element after the imports, `torch.ones(1).sqrt()`: threads that make "
            "the first call of MKL's kernels together may get another one (pytorch#188792)",
            (_INTERVENTION, "threads"),
            f"aten::(_foreach_)?({'|'.join(FUNCTIONS)})_?([.]|$)",
        ),
        Advice(
            "call `torch.use_deterministic_algorithms(True)` at the start of the script",
            (_INTERVENTION, "threads"),
        ),
    ),
    seen_as=OriginKind.KERNEL,
    patches=(*nearby(PatchRule.DETERMINISTIC_ALGORITHMS, PatchRule.NO_BENCHMARKS),),
)
