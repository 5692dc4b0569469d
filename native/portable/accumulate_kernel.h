#include "accumulate.h"

/* Conditions are written so that a NaN is taken over and stays. */
#define SBP_DO_ADD(o, s) ((o) + (s))
#define SBP_DO_MULTIPLY(o, s) ((o) * (s))
#define SBP_DO_LARGEST(o, s) (((s) > (o)) | ((s) != (s)) ? (s) : (o))
#define SBP_DO_SMALLEST(o, s) (((s) < (o)) | ((s) != (s)) ? (s) : (o))
#define SBP_DO_SET(o, s) (s)

#define SBP_ACCUMULATE(name, type, DO)                                                                                 \
    static void SBP(name)(const sbp_accumulate *a, int64_t n) {                                                        \
        type *out = (type *)a->out + n * a->rows * a->columns;                                                         \
        const type *src = (const type *)a->src + n * a->src_n;                                                         \
        const int64_t *index = a->index + n * a->index_n;                                                              \
        if (a->columns == 1)                                                                                           \
            for (int64_t m = 0; m < a->m; m++) {                                                                       \
                const int64_t at = index[m * a->index_m], row = at < 0 ? at + a->wrap : at;                                                             \
                if (row >= 0)                                                                                          \
                    out[row] = DO(out[row], src[m * a->src_m]);                                                        \
            }                                                                                                          \
        else if (a->index_c == 0 && a->src_c == 1)                                                                     \
            for (int64_t m = 0; m < a->m; m++) {                                                                       \
                const int64_t at = index[m * a->index_m], row = at < 0 ? at + a->wrap : at;                                                             \
                type *restrict o = out + row * a->columns;                                                             \
                const type *restrict s = src + m * a->src_m;                                                           \
                if (row >= 0)                                                                                          \
                    for (int64_t c = a->from; c < a->to; c++)                                                          \
                        o[c] = DO(o[c], s[c]);                                                                         \
            }                                                                                                          \
        else                                                                                                           \
            for (int64_t m = 0; m < a->m; m++)                                                                         \
                for (int64_t c = a->from; c < a->to; c++) {                                                            \
                    const int64_t at = index[m * a->index_m + c * a->index_c], row = at < 0 ? at + a->wrap : at;                                        \
                    type *o = out + row * a->columns + c;                                                              \
                    if (row >= 0)                                                                                      \
                        *o = DO(*o, src[m * a->src_m + c * a->src_c]);                                                 \
                }                                                                                                      \
    }

#define SBP_ACCUMULATES(suffix, type)                                                                                  \
    SBP_ACCUMULATE(add_##suffix, type, SBP_DO_ADD)                                                                     \
    SBP_ACCUMULATE(multiply_##suffix, type, SBP_DO_MULTIPLY)                                                           \
    SBP_ACCUMULATE(largest_##suffix, type, SBP_DO_LARGEST)                                                             \
    SBP_ACCUMULATE(smallest_##suffix, type, SBP_DO_SMALLEST)                                                           \
    SBP_ACCUMULATE(set_##suffix, type, SBP_DO_SET)

SBP_ACCUMULATES(acc_f32, float)
SBP_ACCUMULATES(acc_f64, double)

const sbp_accumulate_table SBP(accumulate) = {
    {SBP(add_acc_f32), SBP(multiply_acc_f32), SBP(largest_acc_f32), SBP(smallest_acc_f32), SBP(set_acc_f32)},
    {SBP(add_acc_f64), SBP(multiply_acc_f64), SBP(largest_acc_f64), SBP(smallest_acc_f64), SBP(set_acc_f64)}};
