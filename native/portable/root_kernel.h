#include "root.h"

/* `out` may be `in`: each value depends on its own element only. */
#if defined(__clang__)
#define ROOT_PLACES_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define ROOT_PLACES_APART _Pragma("GCC ivdep")
#endif

static void SBP(root_f32)(const float *in, float *out, int64_t n) {
    ROOT_PLACES_APART
    for (int64_t i = 0; i < n; i++)
        out[i] = sqrtf(in[i]);
}

static void SBP(root_f64)(const double *in, double *out, int64_t n) {
    ROOT_PLACES_APART
    for (int64_t i = 0; i < n; i++)
        out[i] = sqrt(in[i]);
}
#undef ROOT_PLACES_APART

const sbp_root_table SBP(root) = {SBP(root_f32), SBP(root_f64)};
