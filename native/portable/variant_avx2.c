#include "isa.h"
#if defined(SBP_X86)
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#define SBP(name) name##_avx2
#define SBP_IS_AVX2 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#include "variant.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
