/* The kernels of the digest, built for the host from their CUDA source. */
#include "host_launch.h"

#define SB_FN static inline
#include "digest_body.h"

HOST_KERNEL(digest_1x1)
HOST_KERNEL(digest_1x2)
HOST_KERNEL(digest_2x1)
HOST_KERNEL(digest_2x2)
HOST_KERNEL(digest_finish)
