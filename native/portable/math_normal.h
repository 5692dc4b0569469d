/* The normal distribution, for GELU: its distribution function and its density.
 * See "Activations" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_MATH_NORMAL_H
#define SAMEBITS_PORTABLE_MATH_NORMAL_H

#include "math_functions.h"

/* 2^x for -126 <= x <= 0. */
SBP_FUNCTION float sba_exp2_f32(float x) {
    const float k = sbm_round_f32(x), f = x - k;
    float p = 0x1.4447bp-13f;
    p = SBM_FMA_f32(p, f, 0x1.5f096p-10f);
    p = SBM_FMA_f32(p, f, 0x1.3b2a28p-7f);
    p = SBM_FMA_f32(p, f, 0x1.c6af7ap-5f);
    p = SBM_FMA_f32(p, f, 0x1.ebfbep-3f);
    p = SBM_FMA_f32(p, f, 0x1.62e43p-1f);
    p = SBM_FMA_f32(p, f, 1.0f);
    return p * sbm_power_of_two_f32(k);
}

/* The lower tail is 2^q(|x|), with no cancellation; nothing beyond 7. This is q. */
SBP_FUNCTION float sba_normal_power_f32(float x) {
    const float size = sbm_abs_f32(x), z = size > 7.0f ? 7.0f : size;
    float q = 0x1.bbac58p-30f;
    q = SBM_FMA_f32(q, z, -0x1.1def76p-24f);
    q = SBM_FMA_f32(q, z, 0x1.432ddp-20f);
    q = SBM_FMA_f32(q, z, -0x1.a1599ap-17f);
    q = SBM_FMA_f32(q, z, 0x1.49746cp-14f);
    q = SBM_FMA_f32(q, z, -0x1.1f06bp-12f);
    q = SBM_FMA_f32(q, z, -0x1.eeaa2cp-16f);
    q = SBM_FMA_f32(q, z, 0x1.ca7d86p-8f);
    q = SBM_FMA_f32(q, z, -0x1.ade8dp-5f);
    q = SBM_FMA_f32(q, z, -0x1.d63aa8p-2f);
    q = SBM_FMA_f32(q, z, -0x1.26aedap+0f);
    return SBM_FMA_f32(q, z, -1.0f);
}

SBP_FUNCTION float sba_normal_cdf_by_power_f32(float x, float q) {
    const float inside = sba_exp2_f32(q), tail = sbm_abs_f32(x) > 7.0f ? 0.0f : inside, upper = 1.0f - tail;
    return x < 0 ? tail : upper;
}

SBP_FUNCTION float sba_normal_cdf_f32(float x) { return sba_normal_cdf_by_power_f32(x, sba_normal_power_f32(x)); }

SBP_FUNCTION float sba_normal_density_f32(float x) {
    const float size = sbm_abs_f32(x), z = size > 13.0f ? 13.0f : size;
    const float inside = sba_exp2_f32(z * z * -0x1.715476p-1f) * 0x1.988454p-2f;
    return size > 13.0f ? 0.0f : inside;
}

SBP_FUNCTION double sba_normal_cdf_f64(double x) { return 0.5 * (1 + sbm_erf_f64(x * 0x1.6a09e667f3bcdp-1)); }

SBP_FUNCTION double sba_normal_density_f64(double x) { return sbm_exp_f64(-0.5 * x * x) * 0x1.9884533d43651p-2; }

#endif
