#include "attention.h"

#include "gemm.h"
#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_attention_table, attention)

enum {
    IS_F64, IS_BACKWARD, COUNT, HEADS, GROUPS, QUERIES, KEYS, SIZE, VALUE_SIZE, IS_CAUSAL,
    QUERY, KEY = QUERY + 4, VALUE = KEY + 4, OUT = VALUE + 4, /* address, strides of batch, head, position */
    MASK = OUT + 4,                                           /* address, strides of batch, head, query, key */
    LOG = MASK + 5, OF_QUERY, OF_KEY, OF_VALUE
};

typedef struct {
    const int64_t *w;
    const sbp_attention_rows *rows;
    int64_t blocks, failed;
} attention_job;

static char *at(const attention_job *job, int operand, int64_t head, int64_t position) {
    const int64_t *o = job->w + operand, shared = operand == KEY || operand == VALUE ? job->w[GROUPS] : 1;
    const int64_t batch = head / job->w[HEADS], one = head % job->w[HEADS] / shared;
    return (char *)o[0] + (job->w[IS_F64] ? 8 : 4) * (batch * o[1] + one * o[2] + position * o[3]);
}

static void multiply(attention_job *job, const int64_t size[3], const void *a, const int64_t a_steps[2], const void *b,
                     const int64_t b_steps[2], void *c, int64_t c_row) {
    const sbp_product p = {job->w[IS_F64], 1, size[0], size[1], size[2], {0, 0, a, a_steps[0], a_steps[1], 0},
                           {0, 0, b, b_steps[0], b_steps[1], 0}, c, c_row, 1, 0, {1, 1, 0, 0, 0, 0}};
    if (sbp_multiply_part(&p, 0, 0, size[0], 0, size[1]))
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
}

/* One block of queries: those from `first` on, of one head. `keys` of the keys may be seen by one of them. */
typedef struct {
    int64_t head, first, count, keys;
} block;

static block block_of(const attention_job *job, int64_t head, int64_t index) {
    const int64_t *w = job->w, first = index * SBP_QUERY_BLOCK;
    const int64_t end = first + SBP_QUERY_BLOCK < w[QUERIES] ? first + SBP_QUERY_BLOCK : w[QUERIES];
    const block b = {head, first, end - first, w[IS_CAUSAL] && end < w[KEYS] ? end : w[KEYS]};
    return b;
}

static int64_t seen_by(const attention_job *job, const block *b, int64_t i) {
    return job->w[IS_CAUSAL] && b->first + i + 1 < b->keys ? b->first + i + 1 : b->keys;
}

static void make_weights(attention_job *job, const block *b, char *weights) {
    const int64_t *w = job->w, *m = w + MASK, bytes = w[IS_F64] ? 8 : 4;
    multiply(job, (int64_t[]){b->count, b->keys, w[SIZE]}, at(job, QUERY, b->head, b->first),
             (int64_t[]){w[QUERY + 3], 1}, at(job, KEY, b->head, 0), (int64_t[]){w[KEY + 3], 1}, weights, b->keys);
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t from = b->head / w[HEADS] * m[1] + b->head % w[HEADS] * m[2] + (b->first + i) * m[3];
        char *log = w[LOG] ? (char *)w[LOG] + bytes * (b->head * w[QUERIES] + b->first + i) : 0;
        job->rows->weights(weights + bytes * i * b->keys, b->keys, seen_by(job, b, i),
                           m[0] ? (const char *)m[0] + bytes * from : 0, m[4], log);
    }
}

static void forward_share(void *context, int64_t from, int64_t to) {
    attention_job *job = context;
    const int64_t *w = job->w;
    char *weights = sbp_scratch(SBP_SCRATCH_FREE_1, (size_t)((w[IS_F64] ? 8 : 4) * SBP_QUERY_BLOCK * w[KEYS]));
    if (!weights) {
        job->failed = 1;
        return;
    }
    for (int64_t part = from; part < to; part++) {
        const block b = block_of(job, part / job->blocks, part % job->blocks);
        make_weights(job, &b, weights);
        multiply(job, (int64_t[]){b.count, w[VALUE_SIZE], b.keys}, weights, (int64_t[]){b.keys, 1},
                 at(job, VALUE, b.head, 0), (int64_t[]){1, w[VALUE + 3]}, at(job, OUT, b.head, b.first), w[OUT + 3]);
    }
}

/* to[key] += the products of the block's queries with the columns of `factors`. */
static void add_products(attention_job *job, const block *b, const char *factors, const char *queries,
                         const int64_t of[2], char *to, char *spare) {
    char *out = b->first ? spare : to;
    multiply(job, (int64_t[]){b->keys, of[0], b->count}, factors, (int64_t[]){1, b->keys}, queries,
             (int64_t[]){1, of[1]}, out, of[0]);
    if (b->first)
        job->rows->add(to, spare, b->keys * of[0]);
}

static void backward_block(attention_job *job, const block *b, char *memory) {
    const int64_t *w = job->w, bytes = w[IS_F64] ? 8 : 4;
    char *weights = memory, *slopes = weights + bytes * SBP_QUERY_BLOCK * w[KEYS];
    char *spare = slopes + bytes * SBP_QUERY_BLOCK * w[KEYS];
    char *of_query = (char *)w[OF_QUERY] + bytes * (b->head * w[QUERIES] + b->first) * w[SIZE];
    char *of_key = (char *)w[OF_KEY] + bytes * b->head * w[KEYS] * w[SIZE];
    char *of_value = (char *)w[OF_VALUE] + bytes * b->head * w[KEYS] * w[VALUE_SIZE];
    const char *grad = at(job, OUT, b->head, b->first);
    make_weights(job, b, weights);
    add_products(job, b, weights, grad, (int64_t[]){w[VALUE_SIZE], w[OUT + 3]}, of_value, spare);
    multiply(job, (int64_t[]){b->count, b->keys, w[VALUE_SIZE]}, grad, (int64_t[]){w[OUT + 3], 1},
             at(job, VALUE, b->head, 0), (int64_t[]){w[VALUE + 3], 1}, slopes, b->keys);
    for (int64_t i = 0; i < b->count; i++)
        job->rows->slopes(slopes + bytes * i * b->keys, weights + bytes * i * b->keys, b->keys, seen_by(job, b, i));
    multiply(job, (int64_t[]){b->count, w[SIZE], b->keys}, slopes, (int64_t[]){b->keys, 1}, at(job, KEY, b->head, 0),
             (int64_t[]){1, w[KEY + 3]}, of_query, w[SIZE]);
    add_products(job, b, slopes, at(job, QUERY, b->head, b->first), (int64_t[]){w[SIZE], w[QUERY + 3]}, of_key, spare);
}

static void backward_share(void *context, int64_t from, int64_t to) {
    attention_job *job = context;
    const int64_t *w = job->w, widest = w[SIZE] > w[VALUE_SIZE] ? w[SIZE] : w[VALUE_SIZE];
    char *memory = sbp_scratch(SBP_SCRATCH_FREE_1,
                               (size_t)((w[IS_F64] ? 8 : 4) * w[KEYS] * (2 * SBP_QUERY_BLOCK + widest)));
    if (!memory) {
        job->failed = 1;
        return;
    }
    for (int64_t head = from; head < to; head++)
        for (int64_t index = 0; index < job->blocks; index++) {
            const block b = block_of(job, head, index);
            backward_block(job, &b, memory);
        }
}

SBP_API int64_t samebits_portable_attention(const int64_t *words, const double *scalars) {
    const int64_t *w = words;
    const sbp_attention_table *table = attention_now();
    attention_job job = {w, w[IS_F64] ? &table->f64 : &table->f32,
                         (w[QUERIES] + SBP_QUERY_BLOCK - 1) / SBP_QUERY_BLOCK, 0};
    (void)scalars;
    if (w[IS_BACKWARD])
        sbp_share_out(w[COUNT], 1, backward_share, &job);
    else
        sbp_share_out(w[COUNT] * job.blocks, 1, forward_share, &job);
    return job.failed ? SBP_NO_MEMORY : 0;
}
