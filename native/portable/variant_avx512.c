#include "isa.h"
#if defined(SBP_X86)
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define SBP(name) name##_avx512
#define SBP_IS_AVX512 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl"))),             \
                             apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
#endif
#include "variant.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
