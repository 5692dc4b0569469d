/* The kernels of the digest for a GPU. */
#define SB_FN static __device__ __forceinline__
#include "digest_body.h"
