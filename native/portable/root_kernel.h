#include "root.h"

static void SBP(root_f32)(const float *restrict in, float *restrict out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = sqrtf(in[i]);
}

static void SBP(root_f64)(const double *restrict in, double *restrict out, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        out[i] = sqrt(in[i]);
}

const sbp_root_table SBP(root) = {SBP(root_f32), SBP(root_f64)};
