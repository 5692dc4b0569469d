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
            "call `torch.use_deterministic_algorithms(True)` at the start of the script: it raises "
            "where the op has no deterministic way on CUDA, and `samebits run --deterministic` says "
            "what to use instead",
            (_INTERVENTION,),
            "aten::(bincount|histc|median|nanmedian)",
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
