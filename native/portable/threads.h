/* Sharing out work over outputs. */
#ifndef SAMEBITS_PORTABLE_THREADS_H
#define SAMEBITS_PORTABLE_THREADS_H

#include <stdint.h>

/* Does parts from .. to - 1 of the work that `context` describes. */
typedef void (*sbp_share)(void *context, int64_t from, int64_t to);

/* Returns how many threads may be used. */
int sbp_threads(void);

/* Does parts 0 .. parts - 1 on some threads, in runs of at least `least` parts: below twice that, on the calling
 * thread alone. Which thread does a part must never matter to its value. */
void sbp_share_out(int64_t parts, int64_t least, sbp_share share, void *context);

#endif
