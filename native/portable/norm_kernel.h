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
    /* `out` has the weighted gradient and then, in the same place, that of x. */                                     \
    static void SBR(norm_layer_gradient)(const sbp_layer *l, int64_t from, int64_t to) {                              \
        const T *weight = l->weight;                                                                                  \
        const int64_t n = l->n;                                                                                       \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)l->x + row * n, *gradient = (const T *)l->gradient + row * n;                     \
            T *out = (T *)l->out + row * n;                                                                           \
            const T mean = ((const T *)l->mean)[row], rstd = ((const T *)l->rstd)[row];                               \
            if (weight)                                                                                               \
                for (int64_t i = 0; i < n; i++)                                                                       \
                    out[i] = gradient[i] * weight[i];                                                                 \
            else                                                                                                      \
                memcpy(out, gradient, (size_t)n * sizeof(T));                                                         \
            const T shift = SBR(total)(SBP_SUM, out, out, 0, n) / (T)n;                                               \
            const T cross = SBR(total)(SBP_CROSS, x, out, mean, n) / (T)n;                                            \
            const T slope = cross * rstd * rstd;                                                                      \
            for (int64_t i = 0; i < n; i++)                                                                           \
                out[i] = FMA(mean - x[i], slope, out[i] - shift) * rstd;                                              \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    /* One chunk of rows: gradients of the weight and the bias, of `count` columns from `column` on. */               \
    static void SBR(norm_weights)(const sbp_layer *l, int64_t from, int64_t to, int64_t column, int64_t count,        \
                                  void *of_weight, void *of_bias) {                                                   \
        T weight[SBP_LANES][SBN_COLUMNS] = {{0}}, bias[SBP_LANES][SBN_COLUMNS] = {{0}};                               \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const int64_t start = row * l->n + column;                                                                \
            const T *x = (const T *)l->x + start, *gradient = (const T *)l->gradient + start;                         \
            const T mean = ((const T *)l->mean)[row], rstd = ((const T *)l->rstd)[row];                               \
            T *w = weight[(row - from) % SBP_LANES], *b = bias[(row - from) % SBP_LANES];                             \
            for (int64_t i = 0; i < count; i++) {                                                                     \
                w[i] = FMA(gradient[i], (x[i] - mean) * rstd, w[i]);                                                  \
                b[i] = b[i] + gradient[i];                                                                            \
            }                                                                                                         \
        }                                                                                                             \
        for (int h = SBP_LANES / 2; h; h /= 2)                                                                        \
            for (int l = 0; l < h; l++)                                                                               \
                for (int64_t i = 0; i < count; i++) {                                                                 \
                    weight[l][i] = weight[l][i] + weight[l + h][i];                                                   \
                    bias[l][i] = bias[l][i] + bias[l + h][i];                                                         \
                }                                                                                                     \
        memcpy(of_weight, weight[0], (size_t)count * sizeof(T));                                                      \
        memcpy(of_bias, bias[0], (size_t)count * sizeof(T));                                                          \
    }                                                                                                                 \
                                                                                                                      \
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
                sums[c] = SBR(total)(SBP_SUM, gradient + c * inner, gradient, 0, inner);                              \
                crosses[c] = SBR(total)(SBP_CROSS, x + c * inner, gradient + c * inner, mean, inner);                 \
            }                                                                                                         \
            const T sum = weight ? SBR(total)(SBP_PRODUCTS, sums, weight, 0, each)                                    \
                                 : SBR(total)(SBP_SUM, sums, sums, 0, each);                                          \
            const T cross = weight ? SBR(total)(SBP_PRODUCTS, crosses, weight, 0, each)                               \
                                   : SBR(total)(SBP_SUM, crosses, crosses, 0, each);                                  \
            const T shift = sum / (T)n, slope = cross / (T)n * rstd * rstd;                                           \
            for (int64_t c = 0; c < each; c++, x += inner, gradient += inner, out += inner) {                         \
                const T w = weight ? weight[c] : 1;                                                                   \
                for (int64_t i = 0; i < inner; i++)                                                                   \
                    out[i] = FMA(mean - x[i], slope, gradient[i] * w - shift) * rstd;                                 \
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
                                                                                                                      \
    static void SBR(norm_gradient)(const sbp_channels *c, int64_t from, int64_t to) {                                 \
        const T *m = c->m, *k = c->k, *w = c->w, *t = c->t, *r = c->r;                                                \
        const int64_t width = c->inner == 1 ? c->channels : c->inner;                                                 \
        for (int64_t row = from; row < to; row++) {                                                                   \
            const T *x = (const T *)c->x + row * width, *gradient = (const T *)c->gradient + row * width;             \
            T *out = (T *)c->out + row * width;                                                                       \
            if (c->inner == 1)                                                                                        \
                for (int64_t i = 0; i < width; i++)                                                                   \
                    out[i] = FMA(m[i] - x[i], k[i], gradient[i] * w[i] - t[i]) * r[i];                                \
            else {                                                                                                    \
                const int64_t at = row % c->channels;                                                                 \
                const T row_m = m[at], row_k = k[at], row_w = w[at], row_t = t[at], row_r = r[at];                    \
                for (int64_t i = 0; i < width; i++)                                                                   \
                    out[i] = FMA(row_m - x[i], row_k, gradient[i] * row_w - row_t) * row_r;                           \
            }                                                                                                         \
        }                                                                                                             \
    }

#define SBN_F32(name) SBP(name##_f32)
#define SBN_F64(name) SBP(name##_f64)
SBN(float, SBN_F32, fmaf, sqrtf)
SBN(double, SBN_F64, fma, sqrt)

const sbp_norm_table SBP(norm) = {
    {SBP(norm_layer_f32), SBP(norm_layer_gradient_f32), SBP(norm_weights_f32), SBP(norm_scale_f32), SBP(norm_gradient_f32), SBP(norm_group_f32), SBP(norm_group_gradient_f32)},
    {SBP(norm_layer_f64), SBP(norm_layer_gradient_f64), SBP(norm_weights_f64), SBP(norm_scale_f64), SBP(norm_gradient_f64), SBP(norm_group_f64), SBP(norm_group_gradient_f64)},
};

#endif
