#include "pairs.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_pairs_table, pairs)

static void pairs_share(void *context, int64_t from, int64_t to) {
    const sbp_pairs_parameters *p = context;
    const int64_t first = 2 * from, count = to - from;
    if (p->is_f64)
        pairs_now()->f64[p->function]((const double *)p->x + first, (const double *)p->y + first,
                                      (double *)p->out + first, count);
    else
        pairs_now()->f32[p->function]((const float *)p->x + first, (const float *)p->y + first,
                                      (float *)p->out + first, count);
}

int64_t samebits_portable_pairs(const sbp_pairs_parameters *p) {
    sbp_share_out(p->numel, 8192, pairs_share, (void *)p);
    return 0;
}
