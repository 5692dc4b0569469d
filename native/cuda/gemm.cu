/* A kernel of matrix products for a GPU; macros choose its tile and where its operands are contiguous. */
#include "gemm_body.h"
