/* For any processor: no vector instructions are asked for, fma is the C library's where the processor has none. */
#define SBP(name) name##_scalar
#define SBP_IS_SCALAR 1
#include "variant.h"
