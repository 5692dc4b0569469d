#include "elementwise.h"

#include <string.h>

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_elementwise_table, elementwise)

/* words: function, is_f64, x, out, count; out is x or other memory */
typedef struct {
    const int64_t *words;
} unary_job;

static void unary_run(const int64_t *w, const void *x, void *out, int64_t count) {
    if (w[1])
        elementwise_now()->unary_f64[w[0]](x, out, count);
    else
        elementwise_now()->unary_f32[w[0]](x, out, count);
}

#define ASIDE 4096 /* bytes: a kernel does not write over what it reads */

static void unary_in_place(const int64_t *w, char *x, int64_t bytes) {
    char aside[ASIDE] __attribute__((aligned(64)));
    const int64_t size = w[1] ? 8 : 4;
    for (int64_t now; bytes > 0; bytes -= now, x += now) {
        now = bytes < ASIDE ? bytes : ASIDE;
        memcpy(aside, x, (size_t)now);
        unary_run(w, aside, x, now / size);
    }
}

static void unary_share(void *context, int64_t from, int64_t to) {
    const int64_t *w = ((unary_job *)context)->words, size = w[1] ? 8 : 4;
    char *x = (char *)w[2] + from * size, *out = (char *)w[3] + from * size;
    if (x == out)
        unary_in_place(w, x, (to - from) * size);
    else
        unary_run(w, x, out, to - from);
}

SBP_API int64_t samebits_portable_elementwise_unary(const int64_t *words, const double *scalars) {
    unary_job job = {words};
    (void)scalars;
    sbp_share_out(words[4], 8192, unary_share, &job);
    return 0;
}

/* words: function, is_f64, x, y, out, count; out is other memory */
typedef struct {
    const int64_t *words;
} binary_job;

static void binary_share(void *context, int64_t from, int64_t to) {
    const int64_t *w = ((binary_job *)context)->words;
    if (w[1])
        elementwise_now()->binary_f64[w[0]]((const double *)w[2] + from, (const double *)w[3] + from,
                                            (double *)w[4] + from, to - from);
    else
        elementwise_now()->binary_f32[w[0]]((const float *)w[2] + from, (const float *)w[3] + from,
                                            (float *)w[4] + from, to - from);
}

SBP_API int64_t samebits_portable_elementwise_binary(const int64_t *words, const double *scalars) {
    binary_job job = {words};
    (void)scalars;
    sbp_share_out(words[5], 4096, binary_share, &job);
    return 0;
}
