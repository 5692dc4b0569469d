/* Sums over windows. See "Pooling" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_WINDOW_H
#define SAMEBITS_PORTABLE_WINDOW_H

#include <stdint.h>

/* For each of three dimensions: the sizes of a plane and of its output, and for each output position the first input
 * position, the one after the last, and the factor of the divisor; `divisor` is used alone if it is not 0. */
typedef struct {
    int64_t size[3], outputs[3];
    const int64_t *first[3], *end[3], *count[3];
    int64_t divisor;
    int64_t run, run_end; /* output positions of the last dimension whose windows are alike, if any: */
    int64_t step, width;  /* so far apart and so wide, with the same count */
} sbp_window;

/* One plane. `narrow` is the smaller side: the output of forward, the gradient of it in backward. `aside`: memory for one
 * row of it. */
typedef struct {
    void (*f32[2])(const sbp_window *w, void *wide, void *narrow, void *aside);
    void (*f64[2])(const sbp_window *w, void *wide, void *narrow, void *aside);
} sbp_window_table;

#endif
