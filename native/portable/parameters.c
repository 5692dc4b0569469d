#include "parameters.h"

#include "portable.h"

/* As struct's format characters; * for as many of these as the field before says. */
#define SBP_CODE_whole "q"
#define SBP_CODE_real "d"
#define SBP_CODE_in "p"
#define SBP_CODE_out "p"
#define SBP_CODE_three_whole "qqq"
#define SBP_CODE_three_in "ppp"
#define SBP_CODE_four_whole "qqqq"
#define SBP_CODE_four_real "dddd"
#define SBP_CODE_extents "*qqq"
#define SBP_CODE_steps "*qpppppdd"
#define SBP_DESCRIBE_FIELD(type, name) " " #name ":" SBP_CODE_##type
#define SBP_DESCRIBE_KERNEL(name) #name SBP_FIELDS_##name(SBP_DESCRIBE_FIELD) "\n"

const char *samebits_portable_parameters(void) { return SBP_KERNELS(SBP_DESCRIBE_KERNEL); }

/* Whoever fills a struct slot by slot counts on it. */
#define SBP_SLOTS_whole 1
#define SBP_SLOTS_real 1
#define SBP_SLOTS_in 1
#define SBP_SLOTS_out 1
#define SBP_SLOTS_three_whole 3
#define SBP_SLOTS_three_in 3
#define SBP_SLOTS_four_whole 4
#define SBP_SLOTS_four_real 4
#define SBP_SLOTS_extents 0
#define SBP_SLOTS_steps 0
#define SBP_ADD_SLOTS(type, name) +SBP_SLOTS_##type
#define SBP_CHECK_SIZE(name)                                                                                          \
    _Static_assert(sizeof(sbp_##name##_parameters) == 8 * (0 SBP_FIELDS_##name(SBP_ADD_SLOTS)), #name ": not slots of 8 bytes");
SBP_KERNELS(SBP_CHECK_SIZE)
_Static_assert(sizeof(sbp_step_tensor) == 8 * 8, "a step: not slots of 8 bytes");
