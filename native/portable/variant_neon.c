#include "isa.h"
#if defined(SBP_ARM)
#include <arm_neon.h>
#define SBP(name) name##_neon
#define SBP_IS_NEON 1
#include "variant.h"
#endif
