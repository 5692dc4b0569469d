/* The scalar mathematics of portable mode: sbm_NAME_f32(float) and sbm_NAME_f64(double).
 * See "Elementary functions" in docs/reference/portable-numerics.md. */
#ifndef SAMEBITS_PORTABLE_MATH_FUNCTIONS_H
#define SAMEBITS_PORTABLE_MATH_FUNCTIONS_H

#include "math_base.h"
#include "math_coefficients.h"

/* Up to here 2^k is a normal number in e^|x| and e^-|x|. */
#define SBM_SMALL_f32 87.0f
#define SBM_SMALL_f64 708.0

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

#include "math_circle.h"
#include "math_erf.h"
#include "math_hyperbola.h"
#include "math_power.h"
#include "math_gamma.h"

#define SBM_BY_F64(name)                                                                                              \
    SBP_FUNCTION float sbm_##name##_f32(float x) { return (float)sbm_##name##_f64(x); }
#define SBM_BY_F64_OF_TWO(name)                                                                                       \
    SBP_FUNCTION float sbm_##name##_f32(float x, float y) { return (float)sbm_##name##_f64(x, y); }
SBM_BY_F64(erfc)
SBM_BY_F64(ndtr)
SBM_BY_F64(sinh)
SBM_BY_F64(cosh)
SBM_BY_F64(asin)
SBM_BY_F64(acos)
SBM_BY_F64(atan)
SBM_BY_F64(asinh)
SBM_BY_F64(acosh)
SBM_BY_F64(atanh)
SBM_BY_F64(sinc)
SBM_BY_F64(logit)
SBM_BY_F64(log_ndtr)
SBM_BY_F64(erfinv)
SBM_BY_F64(lgamma)
SBM_BY_F64(digamma)
SBM_BY_F64_OF_TWO(atan2)
SBM_BY_F64_OF_TWO(xlogy)
SBM_BY_F64_OF_TWO(xlog1py)
SBM_BY_F64_OF_TWO(hypot)
SBM_BY_F64_OF_TWO(logaddexp)
SBM_BY_F64_OF_TWO(logaddexp2)
#undef SBM_BY_F64
#undef SBM_BY_F64_OF_TWO

#endif
