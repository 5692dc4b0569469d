/* Kernels of portable mode. Plain C ABI, called through ctypes; docs/reference/portable-numerics.md is the definition of every
 * value that they give. Each kernel is compiled several times, once for each instruction set (variant_*.c), and
 * gives the same bits in all of them: every output is one fixed sequence of IEEE operations, instructions work on
 * several outputs side by side, and threads share outputs out among themselves.
 * The kernels' entry points and what they take are in parameters.h.
 */
#ifndef SAMEBITS_PORTABLE_H
#define SAMEBITS_PORTABLE_H

#include <stddef.h>
#include <stdint.h>

#include "parameters.h"

/* Changes with any change to an entry point, so that a stale library is never used. */
#define SBP_ABI 6

SBP_API int samebits_portable_abi(void);

/* The name of each kernel and of its parameters with their types, a line for each: "sqrt is_f64:q x:p out:p count:q".
 * Types: q, a whole number; d, a real one; p, an address; several of them; after *, as many of these as the field
 * before says. */
SBP_API const char *samebits_portable_parameters(void);

/* Uses one instruction set from now on: "avx512", "avx2", "neon", "scalar", or "" for the best. 0 if it cannot. */
SBP_API int samebits_portable_select(const char *isa);

SBP_API const char *samebits_portable_isa(void);

/* Threads to share, those of a running OpenMP library: its GOMP_parallel (libgomp's documented entry for compiled
 * code: runs a function on a team of threads), NULL for threads of our own, and its omp_get_thread_num. Forked
 * children do not use it. */
typedef void (*sbp_team_call)(void (*function)(void *), void *argument, unsigned threads, unsigned flags);
typedef int (*sbp_thread_number)(void);
SBP_API void samebits_portable_share_threads(sbp_team_call call, sbp_thread_number number);

/* Sets how many threads the kernels may use from now on. */
SBP_API void samebits_portable_set_threads(int threads);

#endif
