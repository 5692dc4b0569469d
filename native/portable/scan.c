/* Running sums and products. See "Running sums" in docs/reference/portable-numerics.md. One line of values is one chain in binary64;
 * lines are worked on side by side, so that one set of instructions is enough. */
#include <stdint.h>

#include "portable.h"
#include "threads.h"

enum { LINES = 64 };

#define SCAN_LINES(name, T)                                                                                           \
    static void name(const sbp_scan_parameters *p, int64_t line, int64_t count) {                                     \
        const int64_t n = p->n, inner = p->inner, start = line / inner * n * inner + line % inner;                    \
        const T *x = (const T *)p->x + start;                                                                         \
        T *out = (T *)p->out + start;                                                                                 \
        double chain[LINES];                                                                                          \
        for (int64_t l = 0; l < count; l++)                                                                           \
            chain[l] = !!p->is_product;                                                                               \
        for (int64_t i = 0; i < n; i++, x += inner, out += inner)                                                     \
            for (int64_t l = 0; l < count; l++) {                                                                     \
                chain[l] = p->is_product ? chain[l] * (double)x[l] : chain[l] + (double)x[l];                         \
                out[l] = (T)chain[l];                                                                                 \
            }                                                                                                         \
    }

SCAN_LINES(scan_f32, float)
SCAN_LINES(scan_f64, double)

static void share_lines(void *context, int64_t from, int64_t to) {
    const sbp_scan_parameters *p = context;
    while (from < to) {
        const int64_t left = p->inner - from % p->inner, most = left < to - from ? left : to - from;
        const int64_t count = most < LINES ? most : LINES;
        (p->is_f64 ? scan_f64 : scan_f32)(p, from, count);
        from += count;
    }
}

int64_t samebits_portable_scan(const sbp_scan_parameters *p) {
    sbp_share_out(p->outer * p->inner, 1 + 16384 / p->n, share_lines, (void *)p);
    return 0;
}
