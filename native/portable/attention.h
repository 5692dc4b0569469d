/* Attention. See "Attention" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_ATTENTION_H
#define SAMEBITS_PORTABLE_ATTENTION_H

#include <stdint.h>

#define SBP_QUERY_BLOCK 128

typedef struct {
    /* One row of scores becomes its weights: the first `seen` of n are scores, the others become +0. The mask is
     * added first, unless NULL. `log` gets the logarithm of the sum of the exponentials, unless NULL. */
    void (*weights)(void *row, int64_t n, int64_t seen, const void *mask, int64_t step, void *log);
    /* A row of the gradients of weights becomes that of the scores. */
    void (*slopes)(void *row, const void *weights, int64_t n, int64_t seen);
    void (*add)(void *to, const void *from, int64_t n);
} sbp_attention_rows;

typedef struct {
    sbp_attention_rows f32, f64;
} sbp_attention_table;

#endif
