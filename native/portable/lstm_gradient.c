#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "lstm.h"
#include "portable.h"
#include "reduce.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_lstm_table, lstm)

typedef struct {
    const sbp_lstm_gradient_parameters *p;
    const sbp_lstm_of *kernels;
    char *outs; /* of all steps in their order, NULL where nobody needs them */
    int64_t element, state; /* in bytes: a number; a state of all samples, gates have four times as many */
} gradient_job;

static int64_t place(const gradient_job *j, int64_t step) { return j->p->is_reversed ? j->p->steps - 1 - step : step; }

static const char *of_gates(const gradient_job *j, int64_t step) {
    return (const char *)j->p->of_x + 4 * j->state * place(j, step);
}

/* ---- From step to step ---- */

static int set_backward_product(void *job, int64_t step, sbp_product *product) {
    const gradient_job *j = job;
    product->a.data = of_gates(j, step);
    product->c = j->p->of_first_out;
    return step || j->p->wants_first_out;
}

static const void *row_of(const void *rows, int64_t bytes) { return rows ? (const char *)rows + bytes : NULL; }

static void do_backward(void *job, int64_t step, int64_t from, int64_t to) {
    const gradient_job *j = job;
    const sbp_lstm_gradient_parameters *p = j->p;
    const int64_t each = j->state / p->batch, now = j->state * place(j, step);
    const int is_last = step == p->steps - 1;
    const char *cells = step ? (const char *)p->course[1] + j->state * place(j, step - 1) : p->first_cell;
    if (is_last && p->slopes[2])
        memcpy((char *)p->of_first_cell + from * each, row_of(p->slopes[2], from * each), (size_t)((to - from) * each));
    for (int64_t i = from; i < to; i++) {
        const int64_t row = now + i * each, of_out = p->of_out_strides[0] * place(j, step) + p->of_out_strides[1] * i;
        const sbp_lstm_slopes slopes = {
            .gates = (const char *)p->course[0] + 4 * row,
            .tanh_cell = (const char *)p->course[2] + row,
            .before = cells + i * each,
            .of_out = row_of(p->slopes[0], of_out * j->element),
            .of_next = row_of(is_last ? p->slopes[1] : p->of_first_out, i * each),
            .of_cell = (char *)p->of_first_cell + i * each,
            .of_gates = (char *)p->of_x + 4 * row,
            .out = j->outs ? j->outs + j->state * step + i * each : NULL,
            .sum = (char *)p->of_first_out + i * each,
            .has_cell = !is_last || p->slopes[2]};
        j->kernels->backward(&slopes, p->size);
    }
}

static int64_t do_steps(gradient_job *j) {
    const sbp_lstm_gradient_parameters *p = j->p;
    const int64_t n = p->size;
    const sbp_lstm_walk walk = {
        .product = {.is_f64 = p->is_f64, .batches = 1, .m = p->batch, .n = n, .k = 4 * n,
                    .a = {.line = 4 * n, .k = 1}, .b = {.data = p->weight, .line = 1, .k = n},
                    .c_row = n, .c_column = 1, .epilogue = {.alpha = 1}},
        .steps = p->steps, .is_backward = 1, .job = j,
        .set_product = set_backward_product, .do_samples = do_backward};
    return sbp_lstm_do(&walk);
}

/* ---- The weight ---- */

/* Where the samples of each step lie, the last step first: lines are numbers next to each other. */
typedef struct {
    sbp_pack pack;
    const void **steps;
    int64_t batch, length, element;
} stack;

/* k goes through the samples of all steps. As many as a call asks for are whole steps. */
static void pack_stack(const void *context, int64_t batch, int64_t k_from, int64_t k_to, int64_t from, int64_t to,
                       int64_t width, void *out) {
    const stack *s = context;
    char *panel = out;
    for (; from < to; from += width) {
        const int64_t end = from + width < to ? from + width : to;
        for (int64_t k = k_from; k < k_to; k += s->batch, panel += s->element * s->batch * width) {
            const sbp_operand step = {.data = s->steps[k / s->batch], .line = 1, .k = s->length};
            s->pack(&step, batch, 0, s->batch, from, end, width, panel);
        }
    }
}

static sbp_product weight_product(const gradient_job *j) {
    const int64_t n = j->p->size;
    return (sbp_product){.is_f64 = j->p->is_f64, .batches = 1, .m = 4 * n, .n = n, .k = j->p->batch,
                         .a = {.line = 1, .k = 4 * n}, .b = {.line = 1, .k = n},
                         .c = j->p->of_weight, .c_row = n, .c_column = 1, .epilogue = {.alpha = 1}};
}

/* One product, in which the samples of a step are one chain: each chain is added to the sum of those before, as the
 * product of that step would be. */
static int64_t multiply_stacks(const gradient_job *j, const void **gates, const void **states) {
    const int64_t batch = j->p->batch, n = j->p->size;
    const sbp_pack pack = sbp_pack_of_matrix(j->p->is_f64);
    const stack a = {pack, gates, batch, 4 * n, j->element}, b = {pack, states, batch, n, j->element};
    sbp_product product = weight_product(j);
    product.k = product.k_block = batch;
    product.k *= j->p->steps;
    product.a = (sbp_operand){.pack = pack_stack, .context = &a};
    product.b = (sbp_operand){.pack = pack_stack, .context = &b};
    return sbp_multiply(&product);
}

/* A product for each step: it has several chains, whose sum is added to that of the steps before. */
static int64_t multiply_in_turn(const gradient_job *j, const void **gates, const void **states) {
    const int64_t steps = j->p->steps, n = j->p->size;
    char *aside = malloc((size_t)(4 * n * n * j->element)), *sums[] = {j->p->of_weight, aside};
    int64_t failed = aside ? 0 : SBP_NO_MEMORY;
    for (int64_t i = 0; i < steps && !failed; i++) {
        sbp_product product = weight_product(j);
        product.a.data = gates[i];
        product.b.data = states[i];
        product.c = sums[(steps - 1 - i) % 2];
        if (i)
            product.epilogue = (sbp_epilogue){.alpha = 1, .beta = 1, .self = sums[(steps - i) % 2], .row = n, .column = 1};
        failed = sbp_multiply(&product);
    }
    free(aside);
    return failed;
}

static int64_t do_weight(const gradient_job *j) {
    const sbp_lstm_gradient_parameters *p = j->p;
    const void **gates = malloc((size_t)p->steps * 2 * sizeof *gates);
    if (!gates)
        return SBP_NO_MEMORY;
    const void **states = gates + p->steps;
    for (int64_t i = 0; i < p->steps; i++) {
        const int64_t step = p->steps - 1 - i;
        gates[i] = of_gates(j, step);
        states[i] = step ? j->outs + j->state * (step - 1) : p->first_out;
    }
    const int64_t failed =
        p->batch <= SBP_K_BLOCK ? multiply_stacks(j, gates, states) : multiply_in_turn(j, gates, states);
    free(gates);
    return failed;
}

/* ---- The bias ---- */

/* The sum over samples of each step, and then over steps, the last one first. */
static int64_t do_bias(const gradient_job *j) {
    const sbp_lstm_gradient_parameters *p = j->p;
    const int64_t n = 4 * p->size, extents[] = {p->steps, p->batch, n, p->batch * n, n, 1, 0, 0, 0};
    char *sums = malloc((size_t)(p->steps * n * j->element));
    if (!sums)
        return SBP_NO_MEMORY;
    const sbp_reduce_parameters of_steps = {
        .kind = SBP_SUM, .is_f64 = p->is_f64, .a = p->of_x, .out = sums, .reduced = 2, .axes = 3};
    const int64_t failed = sbp_reduce(&of_steps, extents);
    memcpy(p->of_bias, sums + n * j->element * place(j, p->steps - 1), (size_t)(n * j->element));
    for (int64_t step = p->steps - 2; step >= 0; step--)
        j->kernels->add(sums + n * j->element * place(j, step), p->of_bias, n);
    free(sums);
    return failed;
}

int64_t samebits_portable_lstm_gradient(const sbp_lstm_gradient_parameters *p) {
    const int64_t element = p->is_f64 ? 8 : 4;
    gradient_job j = {p, p->is_f64 ? &lstm_now()->f64 : &lstm_now()->f32, NULL, element, p->batch * p->size * element};
    if (p->of_weight && !(j.outs = malloc((size_t)(p->steps * j.state))))
        return SBP_NO_MEMORY;
    const int failed = do_steps(&j) || (p->of_weight && do_weight(&j)) || (p->of_bias && do_bias(&j));
    free(j.outs);
    return failed ? SBP_NO_MEMORY : 0;
}
