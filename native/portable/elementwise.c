#include "elementwise.h"

#include <string.h>

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_elementwise_table, elementwise)

static void unary_run(const sbp_elementwise_unary_parameters *p, const void *x, void *out, int64_t count) {
    if (p->is_f64)
        elementwise_now()->unary_f64[p->function](x, out, count);
    else
        elementwise_now()->unary_f32[p->function](x, out, count);
}

#define ASIDE 4096 /* bytes: a kernel does not write over what it reads */

static void unary_in_place(const sbp_elementwise_unary_parameters *p, char *x, int64_t bytes) {
    char aside[ASIDE] __attribute__((aligned(64)));
    const int64_t size = p->is_f64 ? 8 : 4;
    for (int64_t now; bytes > 0; bytes -= now, x += now) {
        now = bytes < ASIDE ? bytes : ASIDE;
        memcpy(aside, x, (size_t)now);
        unary_run(p, aside, x, now / size);
    }
}

static void unary_share(void *context, int64_t from, int64_t to) {
    const sbp_elementwise_unary_parameters *p = context;
    const int64_t size = p->is_f64 ? 8 : 4;
    const char *x = (const char *)p->x + from * size;
    char *out = (char *)p->out + from * size;
    if (x == out)
        unary_in_place(p, out, (to - from) * size);
    else
        unary_run(p, x, out, to - from);
}

int64_t samebits_portable_elementwise_unary(const sbp_elementwise_unary_parameters *p) {
    sbp_share_out(p->numel, 8192, unary_share, (void *)p);
    return 0;
}

static void binary_share(void *context, int64_t from, int64_t to) {
    const sbp_elementwise_binary_parameters *p = context;
    if (p->is_f64)
        elementwise_now()->binary_f64[p->function]((const double *)p->x + from, (const double *)p->y + from,
                                                   (double *)p->out + from, to - from);
    else
        elementwise_now()->binary_f32[p->function]((const float *)p->x + from, (const float *)p->y + from,
                                                   (float *)p->out + from, to - from);
}

int64_t samebits_portable_elementwise_binary(const sbp_elementwise_binary_parameters *p) {
    sbp_share_out(p->numel, 4096, binary_share, (void *)p);
    return 0;
}
