/* The scalar mathematics of portable mode: sbm_NAME_f32(float) and sbm_NAME_f64(double).
 * See "Elementary functions" in docs/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_MATH_FUNCTIONS_H
#define SAMEBITS_PORTABLE_MATH_FUNCTIONS_H

#include "math_base.h"
#include "math_coefficients.h"

/* From here on the result is infinite, or rounds to nothing; expm1 is -1; tanh and erf are 1; 2^-k is nothing to 1. */
#define SBM_EXP_TOP_f32 89.0f
#define SBM_EXP_TOP_f64 710.0
#define SBM_EXP_BOTTOM_f32 -104.0f
#define SBM_EXP_BOTTOM_f64 -746.0
#define SBM_EXP2_TOP_f32 129.0f
#define SBM_EXP2_TOP_f64 1025.0
#define SBM_EXP2_BOTTOM_f32 -151.0f
#define SBM_EXP2_BOTTOM_f64 -1076.0
#define SBM_EXPM1_BOTTOM_f32 -20.0f
#define SBM_EXPM1_BOTTOM_f64 -40.0
#define SBM_EXPM1_LOST_f32 -100.0f
#define SBM_EXPM1_LOST_f64 -1000.0
#define SBM_TANH_TOP_f32 10.0f
#define SBM_TANH_TOP_f64 20.0

#define SBM_ERF_TOP_f32 4.0f
#define SBM_ERF_TOP_f64 6.0

#define R float
#define SBM(name) name##_f32
#define C(name) SBM_##name##_f32
#include "math_real.h"
#undef R
#undef SBM
#undef C

#define R double
#define SBM(name) name##_f64
#define C(name) SBM_##name##_f64
#include "math_real.h"
#undef R
#undef SBM
#undef C

#include "math_erf.h"

#endif
