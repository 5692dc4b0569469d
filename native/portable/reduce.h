/* Sums and the like. See "Reductions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_REDUCE_H
#define SAMEBITS_PORTABLE_REDUCE_H

#include <stdint.h>

#include "parameters.h"

#define SBP_CHUNK 256
#define SBP_LANES 16
#define SBP_COLUMNS 256 /* how many columns the columns kernels do at a time */

#define SBP_BOTH 128    /* those that give two sums in one reading */

/* The step of a lane: a; a a; a b; (a - m)^2; b (a - m); |a|; and, multiplied instead of added, a. */
enum { SBP_SUM, SBP_SQUARES, SBP_PRODUCTS, SBP_DEVIATIONS, SBP_CROSS, SBP_MAGNITUDES, SBP_PRODUCT, SBP_KINDS };

#define SBP_USES_B(kind) ((kind) == SBP_PRODUCTS || (kind) == SBP_CROSS)
#define SBP_USES_M(kind) ((kind) == SBP_DEVIATIONS || (kind) == SBP_CROSS)

/* `rows`: `count` rows of `n` values next to each other, the next one `step` values further on; or, where there are
 * `offsets`, of n / 16 (at most 16) lines of 16 values at these offsets. `columns`: `n` <= SBP_CHUNK rows of
 * `count` <= SBP_COLUMNS columns, rows at `offsets`, or `step` apart. b's are the `b_offsets`. */
typedef struct {
    int kind;
    const void *a, *b, *m;
    int64_t a_step, b_step, m_step, count, n;
    const int64_t *offsets, *b_offsets;
    void *out;
} sbp_chunks;

#ifndef SBP_ON_DEVICE
/* The kernel of this name, for other kernels: `extents` are the sizes of the axes, the strides of a, and those of
 * b; the ones in `p` are not read. */
int64_t sbp_reduce(const sbp_reduce_parameters *p, const int64_t *extents);
#endif

typedef struct {
    void (*rows)(const sbp_chunks *c);
    void (*columns)(const sbp_chunks *c);
    void (*tree)(int kind, void *values, int64_t n, int64_t width); /* n rows of `width` values, into the first row */
} sbp_reduce_of;

typedef struct {
    sbp_reduce_of f32, f64;
} sbp_reduce_table;

#endif
