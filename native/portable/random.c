#include "random.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_random_table, random)

static void random_share(void *context, int64_t from, int64_t to) { random_now()->fill(context, from, to); }

/* words: kind, out, count, key, first block, stream, lane, bits, low, in; scalars: a, b */
SBP_API int64_t samebits_portable_random(const int64_t *w, const double *scalars) {
    sbp_random r = {w[0], (void *)w[1], w[2], (uint64_t)w[3], (uint64_t)w[4], (uint32_t)w[5], (uint32_t)w[6],
                    (uint64_t)w[7], w[8], (const void *)w[9], scalars[0], scalars[1]};
    const int64_t words = r.count << sbp_random_wide(r.kind);
    sbp_share_out((words + SBP_RANDOM_WORDS - 1) / SBP_RANDOM_WORDS, 16, random_share, &r);
    return 0;
}
