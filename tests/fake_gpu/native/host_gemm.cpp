/* One kernel of products of matrices, built for the host from its CUDA source: -DGEMM_NAME=... and the other macros. */
#include "host_launch.h"

#include "gemm_body.h"

#define NAMED(macro, name) macro(name)
NAMED(HOST_KERNEL, GEMM_NAME)
