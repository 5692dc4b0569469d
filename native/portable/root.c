#include "root.h"

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_root_table, root)

static void root_share(void *context, int64_t from, int64_t to) {
    const sbp_sqrt_parameters *p = context;
    if (p->is_f64)
        root_now()->f64((const double *)p->x + from, (double *)p->out + from, to - from);
    else
        root_now()->f32((const float *)p->x + from, (float *)p->out + from, to - from);
}

int64_t samebits_portable_sqrt(const sbp_sqrt_parameters *p) {
    sbp_share_out(p->numel, 32768, root_share, (void *)p);
    return 0;
}
