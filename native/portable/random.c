#include "random.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_random_table, random)

static void random_share(void *context, int64_t from, int64_t to) { random_now()->fill(context, from, to); }

int64_t samebits_portable_random(const sbp_random_parameters *p) {
    sbp_random r = {p->kind, p->out, p->numel, (uint64_t)p->key, (uint64_t)p->first, (uint32_t)p->stream,
                    (uint32_t)p->lane, (uint64_t)p->bits, p->low, p->source, p->a, p->b};
    const int64_t words = r.count << sbp_random_wide(r.kind);
    sbp_share_out((words + SBP_RANDOM_WORDS - 1) / SBP_RANDOM_WORDS, 16, random_share, &r);
    return 0;
}
