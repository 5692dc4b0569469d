/* The scalar mathematics, built for the host from its CUDA source; -DMATH_PART=N chooses a share of the kernels. */
#include "host_launch.h"

#include "math.cu"
