#ifndef SAMEBITS_PORTABLE_NORM_KERNEL_H
#define SAMEBITS_PORTABLE_NORM_KERNEL_H

#include "norm.h"
#include "reduce_kernel.h"

#define SBN(T, SBR, FMA, SQRT)                                                                                        \
    static void SBR(norm_layer)(const sbp_layer *l, int64_t from, int64_t to) {                                       \
        const T *weight = l->weight, *bias = l->bias;                                                                 \
        const int64_t n = l->n;                                                                                       \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)l->x + row * n;                                                                   \
            T *out = (T *)l->out + row * n;                                                                           \
            const T mean = SBR(total)(SBP_SUM, x, x, 0, n) / (T)n;                                                    \
            const T variance = SBR(total)(SBP_DEVIATIONS, x, x, mean, n) / (T)n;                                      \
            const T rstd = 1 / SQRT(variance + (T)l->eps);                                                            \
            ((T *)l->mean)[row] = mean;                                                                               \
            ((T *)l->rstd)[row] = rstd;                                                                               \
            if (weight && bias)                                                                                       \
                for (int64_t i = 0; i < n; i++)                                                                       \
                    out[i] = FMA((x[i] - mean) * rstd, weight[i], bias[i]);                                           \
            else                                                                                                      \
                for (int64_t i = 0; i < n; i++)                                                                       \
                    out[i] = FMA((x[i] - mean) * rstd, weight ? weight[i] : 1, bias ? bias[i] : 0);                   \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(norm_layer_gradient)(const sbp_layer *l, int64_t from, int64_t to) {                              \
        const T *weight = l->weight;                                                                                  \
        const int64_t n = l->n;                                                                                       \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)l->x + row * n, *gradient = (const T *)l->gradient + row * n;                     \
            T *out = (T *)l->out + row * n;                                                                           \
            const T mean = ((const T *)l->mean)[row], rstd = ((const T *)l->rstd)[row];                               \
            const SBR(both) found = SBR(total_both)(x, gradient, weight, mean, n);                                    \
            const T shift = found.sum / (T)n, slope = found.cross / (T)n * rstd * rstd;                               \
            if (weight)                                                                                               \
                for (int64_t i = 0; i < n; i++)                                                                       \
                    out[i] = FMA(mean - x[i], slope, gradient[i] * weight[i] - shift) * rstd;                         \
            else                                                                                                      \
                for (int64_t i = 0; i < n; i++)                                                                       \
                    out[i] = FMA(mean - x[i], slope, gradient[i] - shift) * rstd;                                     \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    /* One chunk of rows: gradients of the weight and the bias, of `count` columns from `column` on. */               \
    static void SBR(norm_weights)(const sbp_layer *l, int64_t from, int64_t to, int64_t column, int64_t count,        \
                                  void *of_weight, void *of_bias) {                                                   \
        const int64_t start = from * l->n + column;                                                                   \
        const SBR(columns) c = {(const T *)l->x + start, (const T *)l->gradient + start, (const T *)l->mean + from,   \
                                (const T *)l->rstd + from, l->n, count};                                              \
        SBR(columns_of_both)(1, &c, to - from, of_bias, of_weight);                                                   \
    }                                                                                                                 \
    /* Rows are the groups of the samples: `each` channels of `inner` values. */                                      \
    static void SBR(norm_group)(const sbp_group *g, int64_t from, int64_t to) {                                       \
        const T *weight = g->weight, *bias = g->bias;                                                                 \
        const int64_t inner = g->inner, n = g->each * inner;                                                          \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)g->x + row * n;                                                                   \
            T *out = (T *)g->out + row * n;                                                                           \
            const T mean = SBR(total)(SBP_SUM, x, x, 0, n) / (T)n;                                                    \
            const T variance = SBR(total)(SBP_DEVIATIONS, x, x, mean, n) / (T)n;                                      \
            const T rstd = 1 / SQRT(variance + (T)g->eps);                                                            \
            ((T *)g->mean)[row] = mean;                                                                               \
            ((T *)g->rstd)[row] = rstd;                                                                               \
            for (int64_t c = 0; c < g->each; c++, x += inner, out += inner) {                                         \
                const int64_t channel = row % g->groups * g->each + c;                                                \
                const T scale = weight ? rstd * weight[channel] : rstd, shift = bias ? bias[channel] : 0;             \
                for (int64_t i = 0; i < inner; i++)                                                                   \
                    out[i] = FMA(x[i] - mean, scale, shift);                                                          \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(norm_group_gradient)(const sbp_group *g, int64_t from, int64_t to) {                              \
        const int64_t inner = g->inner, each = g->each, n = each * inner;                                             \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)g->x + row * n, *gradient = (const T *)g->gradient + row * n;                     \
            const T *weight = g->weight ? (const T *)g->weight + row % g->groups * each : NULL;                       \
            const T mean = ((const T *)g->mean)[row], rstd = ((const T *)g->rstd)[row];                               \
            T *out = (T *)g->out + row * n, *sums = (T *)g->sums + row * each, *crosses = (T *)g->crosses + row * each;\
            for (int64_t c = 0; c < each; c++) {                                                                      \
                const SBR(both) found = SBR(total_both)(x + c * inner, gradient + c * inner, NULL, mean, inner);      \
                sums[c] = found.sum;                                                                                  \
                crosses[c] = found.cross;                                                                             \
            }                                                                                                         \
            const T sum = weight ? SBR(total)(SBP_PRODUCTS, sums, weight, 0, each)                                    \
                                 : SBR(total)(SBP_SUM, sums, sums, 0, each);                                          \
            const T cross = weight ? SBR(total)(SBP_PRODUCTS, crosses, weight, 0, each)                               \
                                   : SBR(total)(SBP_SUM, crosses, crosses, 0, each);                                  \
            const T shift = sum / (T)n, slope = cross / (T)n * rstd * rstd;                                           \
            for (int64_t c = 0; c < each; c++, x += inner, gradient += inner, out += inner) {                         \
                const SBR(terms) terms = {mean, slope, weight ? weight[c] : 1, shift, rstd};                          \
                SBR(gradient_run)(x, gradient, out, inner, terms);                                                    \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(norm_scale)(const sbp_channels *c, int64_t from, int64_t to) {                                    \
        const T *m = c->m, *k = c->k, *t = c->t;                                                                      \
        const int64_t width = c->inner == 1 ? c->channels : c->inner;                                                 \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)c->x + row * width;                                                               \
            T *out = (T *)c->out + row * width;                                                                       \
            if (c->inner == 1)                                                                                        \
                for (int64_t i = 0; i < width; i++)                                                                   \
                    out[i] = FMA(x[i] - m[i], k[i], t[i]);                                                            \
            else {                                                                                                    \
                const T row_m = m[row % c->channels], row_k = k[row % c->channels], row_t = t[row % c->channels];     \
                for (int64_t i = 0; i < width; i++)                                                                   \
                    out[i] = FMA(x[i] - row_m, row_k, row_t);                                                         \
            }                                                                                                         \
        }                                                                                                             \
    }                                                                                                                 \

#define SBN_F32(name) SBP(name##_f32)
#define SBN_F64(name) SBP(name##_f64)
SBN(float, SBN_F32, fmaf, sqrtf)
SBN(double, SBN_F64, fma, sqrt)

const sbp_norm_table SBP(norm) = {
    {SBP(norm_layer_f32), SBP(norm_layer_gradient_f32), SBP(norm_weights_f32), SBP(norm_scale_f32), SBP(norm_group_f32), SBP(norm_group_gradient_f32)},
    {SBP(norm_layer_f64), SBP(norm_layer_gradient_f64), SBP(norm_weights_f64), SBP(norm_scale_f64), SBP(norm_group_f64), SBP(norm_group_gradient_f64)},
};

#endif
