/* What the shared headers need of <stdint.h>, for NVRTC, which has no file of this name. */
#ifndef SAMEBITS_CUDA_STDINT_H
#define SAMEBITS_CUDA_STDINT_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef signed int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long long uintptr_t;

#define INT64_C(x) x##ll
#define UINT32_C(x) x##u
#define UINT64_C(x) x##ull

#endif
