/* Memory that a thread keeps between calls, freed when it ends. */
#ifndef SAMEBITS_PORTABLE_SCRATCH_H
#define SAMEBITS_PORTABLE_SCRATCH_H

#include <stddef.h>

/* One for each part of a kernel that may be in use at the same time on a thread. */
enum { SBP_SCRATCH_A, SBP_SCRATCH_B, SBP_SCRATCH_VECTOR, SBP_SCRATCH_FREE_1, SBP_SCRATCH_FREE_2, SBP_SCRATCHES };

/* At least this many bytes at a multiple of 64, what they hold is not defined; valid until the thread asks for the same
 * one again. NULL without memory. */
void *sbp_scratch(int which, size_t bytes);

/* The same, but memory of its own where it is so much that a thread should not keep it; then given back after use. */
void *sbp_borrow(int which, size_t bytes);
void sbp_give_back(void *borrowed, size_t bytes);

#endif
