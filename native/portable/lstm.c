#include "lstm.h"

#include <stdlib.h>

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_lstm_table, lstm)

#define WORTH_A_THREAD 200000 /* multiplications */
#define SAMPLES_WORTH_A_THREAD 2048 /* units */
#define STEPS_OF_ONE_WORTH_PACKING 8 /* one sample: a packed weight is read twice as fast */

/* ---- Walks ---- */

typedef struct {
    const sbp_lstm_walk *walk;
    sbp_product product;
    int64_t rows, now; /* samples in a share; the step of `share_step` */
    int failed;
} walking;

static int64_t step_at(const sbp_lstm_walk *w, int64_t i) { return w->is_backward ? w->steps - 1 - i : i; }

/* Some samples, through all steps: samples do not meet. */
static void share_samples(void *context, int64_t from, int64_t to) {
    walking *g = context;
    const sbp_lstm_walk *w = g->walk;
    sbp_product p = g->product;
    const int64_t first = from * g->rows, end = to * g->rows < p.m ? to * g->rows : p.m;
    for (int64_t i = 0; i < w->steps; i++) {
        const int64_t step = step_at(w, i);
        if (w->is_backward)
            w->do_samples(w->job, step, first, end);
        if (w->set_product(w->job, step, &p) && sbp_multiply_part(&p, 0, first, end, 0, p.n))
            __atomic_store_n(&g->failed, 1, __ATOMIC_RELAXED);
        if (!w->is_backward)
            w->do_samples(w->job, step, first, end);
    }
}

static void share_step(void *context, int64_t from, int64_t to) {
    const walking *g = context;
    g->walk->do_samples(g->walk->job, g->now, from, to);
}

/* All samples, one step after the other. */
static void do_steps(walking *g, int64_t units) {
    const sbp_lstm_walk *w = g->walk;
    const int64_t least = 1 + SAMPLES_WORTH_A_THREAD / units;
    for (int64_t i = 0; i < w->steps; i++) {
        g->now = step_at(w, i);
        if (w->is_backward)
            sbp_share_out(g->product.m, least, share_step, g);
        if (w->set_product(w->job, g->now, &g->product) && sbp_multiply(&g->product))
            g->failed = 1;
        if (!w->is_backward)
            sbp_share_out(g->product.m, least, share_step, g);
    }
}

int64_t sbp_lstm_do(const sbp_lstm_walk *walk) {
    walking g = {walk, walk->product, sbp_tile_rows(walk->product.is_f64), 0, 0};
    const int64_t each = g.product.n * g.product.k, shares = (g.product.m + g.rows - 1) / g.rows, threads = sbp_threads();
    void *packed = NULL;
    const int pays = walk->steps >= (g.product.m > 1 ? 2 : STEPS_OF_ONE_WORTH_PACKING);
    if (pays && !(packed = sbp_pack_columns(&g.product)))
        return SBP_NO_MEMORY;
    if (packed && g.product.m > 1 && (shares >= threads || g.product.m * each < 2 * WORTH_A_THREAD))
        sbp_share_out(shares, 1 + WORTH_A_THREAD / (walk->steps * g.rows * each), share_samples, &g);
    else
        do_steps(&g, g.product.n < g.product.k ? g.product.n : g.product.k);
    free(packed);
    return g.failed ? SBP_NO_MEMORY : 0;
}

/* ---- Forwards ---- */

typedef struct {
    const sbp_lstm_parameters *p;
    const sbp_lstm_of *kernels;
    int64_t state; /* bytes of a state of all samples; gates have four times as many */
} forward_job;

static int64_t place(const forward_job *j, int64_t step) { return j->p->is_reversed ? j->p->steps - 1 - step : step; }

static const char *before(const forward_job *j, int64_t step, const void *first, const void *later, int keeps) {
    return step ? (const char *)later + keeps * j->state * place(j, step - 1) : first;
}

static int set_forward_product(void *job, int64_t step, sbp_product *product) {
    const forward_job *j = job;
    product->a.data = before(j, step, j->p->first_out, j->p->out, 1);
    product->c = (char *)j->p->gates + (j->p->keeps ? 4 * j->state * place(j, step) : 0);
    return 1;
}

static void do_forward(void *job, int64_t step, int64_t from, int64_t to) {
    const forward_job *j = job;
    const sbp_lstm_parameters *p = j->p;
    const int64_t each = j->state / p->batch, now = place(j, step), kept = p->keeps ? j->state * now : 0;
    const char *cells = before(j, step, p->first_cell, p->cells, (int)p->keeps);
    for (int64_t i = from; i < to; i++) {
        const sbp_lstm_row row = {.x = (const char *)p->x + 4 * (j->state * now + i * each),
                                  .bias = p->bias,
                                  .before = cells + i * each,
                                  .gates = (char *)p->gates + 4 * (kept + i * each),
                                  .cell = (char *)p->cells + kept + i * each,
                                  .tanh_cell = (char *)p->tanh_cells + kept + i * each,
                                  .out = (char *)p->out + j->state * now + i * each};
        j->kernels->forward(&row, p->size);
    }
}

int64_t samebits_portable_lstm(const sbp_lstm_parameters *p) {
    const int64_t n = p->size;
    forward_job j = {p, p->is_f64 ? &lstm_now()->f64 : &lstm_now()->f32, p->batch * n * (p->is_f64 ? 8 : 4)};
    const sbp_lstm_walk walk = {
        .product = {.is_f64 = p->is_f64, .batches = 1, .m = p->batch, .n = 4 * n, .k = n,
                    .a = {.line = n, .k = 1}, .b = {.data = p->weight, .line = n, .k = 1},
                    .c_row = 4 * n, .c_column = 1, .epilogue = {.alpha = 1}},
        .steps = p->steps, .job = &j, .set_product = set_forward_product, .do_samples = do_forward};
    return sbp_lstm_do(&walk);
}
