#ifndef SAMEBITS_PORTABLE_REDUCE_KERNEL_H
#define SAMEBITS_PORTABLE_REDUCE_KERNEL_H

#include "reduce.h"

#undef SBP_VECTOR
#if defined(SBP_IS_AVX512)
#define SBP_VECTOR 64
#elif defined(SBP_IS_AVX2)
#define SBP_VECTOR 32
#else
#define SBP_VECTOR 16
#endif

#undef SBR_INLINE
#define SBR_INLINE static inline __attribute__((always_inline, unused))

#define SBR_WIDTH ((int)(SBP_VECTOR / sizeof(SBR_T)))
#define SBR_PIECES (SBP_LANES / SBR_WIDTH)
#define SBR_NODE 16 /* chunks of a node of a tree */

#define SBR_T float
#define SBR(name) SBP(name##_f32)
#define SBR_FMA fmaf
#define SBR_ABS fabsf
#define SBR_IS_F32 1
#include "reduce_typed.h"
#include "reduce_both.h"
#undef SBR_T
#undef SBR
#undef SBR_FMA
#undef SBR_ABS
#undef SBR_IS_F32

#define SBR_T double
#define SBR(name) SBP(name##_f64)
#define SBR_FMA fma
#define SBR_ABS fabs
#define SBR_IS_F32 0
#include "reduce_typed.h"
#include "reduce_both.h"
#undef SBR_T
#undef SBR
#undef SBR_FMA
#undef SBR_ABS
#undef SBR_IS_F32

#undef SBR_WIDTH
#undef SBR_PIECES
#undef SBR_NODE

const sbp_reduce_table SBP(reduce) = {
    {SBP(chunk_rows_f32), SBP(chunk_columns_f32), SBP(chunk_tree_f32)},
    {SBP(chunk_rows_f64), SBP(chunk_columns_f64), SBP(chunk_tree_f64)},
};

#endif
