#include "gemm.h"
#include "simd.h"

#if defined(SBP_IS_AVX512)
#define ROWS 8 /* 14 x 2 fits too, and is a tenth slower on Ice Lake */
#define VECTORS 3
#elif defined(SBP_IS_AVX2)
#define ROWS 6
#define VECTORS 2
#elif defined(SBP_IS_NEON)
#define ROWS 8
#define VECTORS 3
#else
#define ROWS 4
#define VECTORS 3
#endif

#define T float
#define V vf32
#include "gemm_micro.h"
static const sbp_gemm_kernels gemm_of_float = GEMM_KERNELS;
#undef T
#undef V

#define T double
#define V vf64
#include "gemm_micro.h"
static const sbp_gemm_kernels gemm_of_double = GEMM_KERNELS;
#undef T
#undef V

const sbp_gemm_table SBP(gemm) = {&gemm_of_float, &gemm_of_double};
