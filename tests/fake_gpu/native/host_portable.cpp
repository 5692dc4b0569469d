/* Kernels of portable mode, built for the host from a CUDA source: -DSOURCE="portable_rows.cu", and -DPART=N where it has
 * shares. */
#include "host_launch.h"

#include SOURCE
