/* Running sums and products. See "Running sums" in docs/portable-numerics.md. One line of values is one chain in binary64;
 * lines are worked on side by side, so that one set of instructions is enough. */
#include <stdint.h>

#include "portable.h"
#include "threads.h"

enum { SCAN_SUM, SCAN_PRODUCT };
enum { LINES = 64 };

/* words: kind, is_f64, x, out, outer, n, inner; both contiguous (outer, n, inner) */
#define SCAN_LINES(name, T)                                                                                           \
    static void name(const int64_t *w, int64_t line, int64_t count) {                                                 \
        const int64_t n = w[5], inner = w[6], start = line / inner * n * inner + line % inner;                        \
        const T *x = (const T *)w[2] + start;                                                                         \
        T *out = (T *)w[3] + start;                                                                                   \
        double chain[LINES];                                                                                          \
        for (int64_t l = 0; l < count; l++)                                                                           \
            chain[l] = w[0] == SCAN_PRODUCT;                                                                          \
        for (int64_t i = 0; i < n; i++, x += inner, out += inner)                                                     \
            for (int64_t l = 0; l < count; l++) {                                                                     \
                chain[l] = w[0] == SCAN_PRODUCT ? chain[l] * (double)x[l] : chain[l] + (double)x[l];                  \
                out[l] = (T)chain[l];                                                                                 \
            }                                                                                                         \
    }

SCAN_LINES(scan_f32, float)
SCAN_LINES(scan_f64, double)

static void share_lines(void *context, int64_t from, int64_t to) {
    const int64_t *w = context;
    while (from < to) {
        const int64_t left = w[6] - from % w[6], most = left < to - from ? left : to - from;
        const int64_t count = most < LINES ? most : LINES;
        (w[1] ? scan_f64 : scan_f32)(w, from, count);
        from += count;
    }
}

SBP_API int64_t samebits_portable_scan(const int64_t *words, const double *scalars) {
    (void)scalars;
    sbp_share_out(words[4] * words[6], 1 + 16384 / words[5], share_lines, (void *)words);
    return 0;
}
