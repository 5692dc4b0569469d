#include "gemm.h"

#define SBP_NAIVE_GEMM(name, type, fma_of)                                                                            \
    static void SBP(name)(const sbp_gemm *g) {                                                                        \
        const type *a = g->a, *b = g->b;                                                                              \
        for (int64_t i = 0; i < g->m; i++)                                                                            \
            for (int64_t j = 0; j < g->n; j++) {                                                                      \
                type total = 0;                                                                                       \
                for (int64_t from = 0; from < g->k; from += SBP_K_BLOCK) {                                            \
                    const int64_t to = from + SBP_K_BLOCK < g->k ? from + SBP_K_BLOCK : g->k;                         \
                    type chain = 0;                                                                                   \
                    for (int64_t k = from; k < to; k++)                                                               \
                        chain = fma_of(a[i * g->a_row + k * g->a_column], b[k * g->b_row + j * g->b_column], chain);  \
                    total += chain;                                                                                   \
                }                                                                                                     \
                ((type *)g->c)[i * g->c_row + j] = total;                                                             \
            }                                                                                                         \
    }

SBP_NAIVE_GEMM(gemm_f32, float, fmaf)
SBP_NAIVE_GEMM(gemm_f64, double, fma)

const sbp_gemm_table SBP(gemm) = {SBP(gemm_f32), SBP(gemm_f64)};
