/* What the shared headers need of <math.h>, for NVRTC, which has the functions built in and no file of this name. */
#ifndef SAMEBITS_CUDA_MATH_H
#define SAMEBITS_CUDA_MATH_H

#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)

#endif
