#include "isa.h"

#include <string.h>

#include "portable.h"

int samebits_portable_abi(void) { return SBP_ABI; }

#if defined(SBP_X86)
static const char *const names[] = {"scalar", "avx2", "avx512"};
static int best(void) {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return SBP_SCALAR;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
               ? SBP_SECOND
               : SBP_FIRST;
}
#elif defined(SBP_ARM)
static const char *const names[] = {"scalar", "neon"};
static int best(void) { return SBP_FIRST; }
#else
static const char *const names[] = {"scalar"};
static int best(void) { return SBP_SCALAR; }
#endif

static int active = -1; /* set once before use, and by tests: one word, so any thread sees a whole value */

int sbp_isa_now(void) {
    const int found = active;
    return found >= 0 ? found : (active = best());
}

int samebits_portable_select(const char *isa) {
    const int highest = best();
    if (!*isa) {
        active = highest;
        return 1;
    }
    for (int i = 0; i <= highest; i++)
        if (!strcmp(isa, names[i])) {
            active = i;
            return 1;
        }
    return 0;
}

const char *samebits_portable_isa(void) { return names[sbp_isa_now()]; }
