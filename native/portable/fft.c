#include "fft.h"

#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_fft_table, fft)

enum { FEWEST = 4, CACHED = 1 << 20 }; /* lanes that are worth the work of all; bytes of a buffer that caches hold */

/* The numbers before transform t of a tensor (outer, n, inner), n numbers of `size` bytes along the middle axis. */
static int64_t offset(const sbp_fft_parameters *p, int64_t t, int64_t n, int64_t size) {
    return (t / p->inner * n * p->inner + t % p->inner) * size;
}

static void share(void *context, int64_t from, int64_t to) {
    sbp_fft *f = context;
    const sbp_fft_parameters *p = f->parameters;
    const sbp_fft_of *kernels = p->is_f64 ? &fft_now()->f64 : &fft_now()->f32;
    const int64_t real = p->is_f64 ? 8 : 4, kept = p->n / 2 + 1;
    const int64_t n_in = p->kind == SBP_FFT_TO_REAL ? kept : p->n, n_out = p->kind == SBP_FFT_FROM_REAL ? kept : p->n;
    const int64_t size_in = p->kind == SBP_FFT_FROM_REAL ? real : 2 * real;
    const int64_t size_out = p->kind == SBP_FFT_TO_REAL ? real : 2 * real;
    const int64_t one = (f->length + 1) * 2 * real, lanes = p->is_f64 ? SBP_FFT_LANES_F64 : SBP_FFT_LANES_F32;
    const int by_lanes = to - from >= FEWEST && one * lanes <= CACHED;
    const size_t bytes = (size_t)(by_lanes ? one * lanes : one) + 64;
    char *a = sbp_scratch(SBP_SCRATCH_FREE_1, bytes), *b = sbp_scratch(SBP_SCRATCH_FREE_2, bytes);
    if (!a || !b) {
        f->failed = 1;
        return;
    }
    for (int64_t count; from < to; from += count) {
        count = by_lanes && to - from >= FEWEST ? (to - from < lanes ? to - from : lanes) : 1;
        const void *in[SBP_FFT_LANES_F32];
        void *out[SBP_FFT_LANES_F32];
        for (int64_t i = 0; i < count; i++) {
            in[i] = (const char *)p->x + offset(p, from + i, n_in, size_in);
            out[i] = (char *)p->out + offset(p, from + i, n_out, size_out);
        }
        if (count == 1)
            kernels->one(f, in[0], out[0], a, b);
        else
            kernels->lanes(f, (int)count, in, out, a, b);
    }
}

int64_t samebits_portable_fft(const sbp_fft_parameters *p) {
    const int64_t half = p->kind != SBP_FFT_COMPLEX && p->n % 2 == 0, length = half ? p->n / 2 : p->n;
    const sbp_fft_place complex = {2 * p->inner, 1};
    const sbp_fft_place reals = half ? (sbp_fft_place){2 * p->inner, p->inner} : (sbp_fft_place){p->inner, 0};
    sbp_fft f = {p, half, length, 0, p->kind == SBP_FFT_FROM_REAL ? reals : complex,
                 p->kind == SBP_FFT_TO_REAL ? reals : complex};
    sbp_share_out(p->outer * p->inner, 1 + 8192 / p->n, share, &f);
    return f.failed ? SBP_NO_MEMORY : 0;
}
