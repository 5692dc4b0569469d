#ifndef SAMEBITS_PORTABLE_BATCH_NORM_KERNEL_H
#define SAMEBITS_PORTABLE_BATCH_NORM_KERNEL_H

#include "batch_norm.h"
#include "reduce_kernel.h"

#define SBB(T, SBR, FMA)                                                                                              \
    /* Chunks of images whose lines are whole: where the first channel has them. NULL if they are in one piece. */    \
    static const int64_t *SBR(batch_lines)(const sbp_batch *b, int64_t first, int64_t n, int64_t *lines) {            \
        const int64_t inner = b->inner, whole = b->channels * inner;                                                  \
        int64_t at = first % inner, sample = first / inner * whole;                                                   \
        const int64_t *found = at + n <= inner ? NULL : lines;                                                        \
        for (int64_t line = 0; line < n / SBP_LANES; line++, at += SBP_LANES) {                                       \
            if (at == inner)                                                                                          \
                sample += whole, at = 0;                                                                              \
            lines[line] = sample + at;                                                                                \
        }                                                                                                             \
        return found;                                                                                                 \
    }                                                                                                                 \
                                                                                                                      \
    /* n values of a channel that lie in several pieces, from value `first` of the channel on. */                     \
    static void SBR(batch_gather)(const sbp_batch *b, const T *of_channel, int64_t first, int64_t n, T *to) {         \
        const int64_t inner = b->inner, whole = b->channels * inner;                                                  \
        int64_t at = first % inner;                                                                                   \
        const T *sample = of_channel + first / inner * whole;                                                         \
        for (int64_t done = 0; done < n; sample += whole, at = 0) {                                                   \
            const int64_t take = inner - at < n - done ? inner - at : n - done;                                       \
            memcpy(to + done, sample + at, (size_t)take * sizeof(T));                                                 \
            done += take;                                                                                             \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(batch_image_sums)(const sbp_batch *b, int64_t first, int64_t n, int64_t from, int64_t to,         \
                                      T *sums) {                                                                      \
        int64_t line[SBP_CHUNK / SBP_LANES];                                                                          \
        T x[SBP_CHUNK], gradient[SBP_CHUNK];                                                                          \
        const int in_lines = b->inner % SBP_LANES == 0;                                                               \
        const int64_t *lines = in_lines ? SBR(batch_lines)(b, first, n, line) : NULL;                                 \
        const int64_t start = in_lines && !lines ? line[0] : 0;                                                       \
        for (int64_t c = from; c < to; c++) {                                                                         \
            const T *of_x = (const T *)b->x + c * b->inner, *of_gradient = (const T *)b->gradient + c * b->inner;     \
            if (!in_lines) {                                                                                          \
                SBR(batch_gather)(b, of_x, first, n, x);                                                              \
                SBR(batch_gather)(b, of_gradient, first, n, gradient);                                                \
            }                                                                                                         \
            const SBR(pair) of = {in_lines ? of_x + start : x, in_lines ? of_gradient + start : gradient, NULL,       \
                                  lines, ((const T *)b->mean)[c]};                                                    \
            const SBR(both) found = n < SBP_CHUNK ? SBR(chunk_of_both)(0, lines != NULL, &of, n)                      \
                                    : lines       ? SBR(chunk_of_both)(0, 1, &of, SBP_CHUNK)                          \
                                                  : SBR(chunk_of_both)(0, 0, &of, SBP_CHUNK);                         \
            sums[c - from] = found.sum;                                                                               \
            sums[to - from + c - from] = found.cross;                                                                 \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(batch_sums)(const sbp_batch *b, int64_t chunk, int64_t from, int64_t to, void *sums) {            \
        const int64_t first = chunk * SBP_CHUNK, left = b->outer * b->inner - first;                                  \
        const int64_t n = left < SBP_CHUNK ? left : SBP_CHUNK;                                                        \
        if (b->inner > 1) {                                                                                           \
            SBR(batch_image_sums)(b, first, n, from, to, sums);                                                       \
            return;                                                                                                   \
        }                                                                                                             \
        const int64_t start = first * b->channels + from;                                                             \
        const SBR(columns) c = {(const T *)b->x + start, (const T *)b->gradient + start, (const T *)b->mean + from,   \
                                NULL, b->channels, to - from};                                                        \
        SBR(columns_of_both)(0, &c, n, sums, (T *)sums + (to - from));                                                \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(batch_terms)(const sbp_batch *b, int64_t from, int64_t to, const void *of) {                      \
        const T *sums = (const T *)of - from, *crosses = sums + (to - from), *rstd = b->rstd, *weight = b->weight;    \
        const T count = (T)(b->outer * b->inner);                                                                     \
        for (int64_t c = from; c < to; c++) {                                                                         \
            ((T *)b->of_bias)[c] = sums[c];                                                                           \
            ((T *)b->of_weight)[c] = crosses[c] * rstd[c];                                                            \
            ((T *)b->slope)[c] = b->training ? crosses[c] / count * rstd[c] * rstd[c] : 0;                            \
            ((T *)b->shift)[c] = b->training ? sums[c] / count : 0;                                                   \
            ((T *)b->scale)[c] = weight ? rstd[c] * weight[c] : rstd[c];                                              \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    static void SBR(batch_gradient)(const sbp_batch *b, int64_t sample, int64_t from, int64_t to) {                   \
        const T *mean = b->mean, *slope = b->slope, *shift = b->shift, *scale = b->scale;                             \
        const int64_t inner = b->inner, start = sample * b->channels * inner;                                         \
        const T *x = (const T *)b->x + start, *gradient = (const T *)b->gradient + start;                             \
        T *out = (T *)b->out + start;                                                                                 \
        if (inner == 1)                                                                                               \
            for (int64_t c = from; c < to; c++)                                                                       \
                out[c] = FMA(mean[c] - x[c], slope[c], gradient[c] - shift[c]) * scale[c];                            \
        else                                                                                                          \
            for (int64_t c = from; c < to; c++)                                                                       \
                SBR(gradient_run)(x + c * inner, gradient + c * inner, out + c * inner, inner,                        \
                                  (SBR(terms)){mean[c], slope[c], 1, shift[c], scale[c]});                            \
    }

#define SBB_F32(name) SBP(name##_f32)
#define SBB_F64(name) SBP(name##_f64)
SBB(float, SBB_F32, fmaf)
SBB(double, SBB_F64, fma)

const sbp_batch_norm_table SBP(batch_norm) = {
    {SBP(batch_sums_f32), SBP(batch_terms_f32), SBP(batch_gradient_f32)},
    {SBP(batch_sums_f64), SBP(batch_terms_f64), SBP(batch_gradient_f64)},
};

#endif
