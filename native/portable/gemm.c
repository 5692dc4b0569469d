#include "gemm.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_gemm_table, gemm)

/* words: is_f64, a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, batch, a_batch, b_batch, c_batch */
typedef struct {
    const int64_t *words;
} gemm_job;

static void gemm_share(void *context, int64_t from, int64_t to) {
    const int64_t *w = ((gemm_job *)context)->words, rows = w[4], size = w[0] ? 8 : 4;
    while (from < to) {
        const int64_t batch = from / rows, row = from % rows;
        const int64_t end = (batch + 1) * rows < to ? (batch + 1) * rows : to;
        const sbp_gemm g = {(const char *)w[1] + size * (batch * w[13] + row * w[7]),
                            (const char *)w[2] + size * batch * w[14],
                            (char *)w[3] + size * (batch * w[15] + row * w[11]),
                            end - from,
                            w[5],
                            w[6],
                            w[7],
                            w[8],
                            w[9],
                            w[10],
                            w[11]};
        (w[0] ? gemm_now()->f64 : gemm_now()->f32)(&g);
        from = end;
    }
}

SBP_API int64_t samebits_portable_gemm(const int64_t *words, const double *scalars) {
    gemm_job job = {words};
    (void)scalars;
    sbp_share_out(words[4] * words[12], 1 + 65536 / (1 + words[5] * words[6]), gemm_share, &job);
    return 0;
}
