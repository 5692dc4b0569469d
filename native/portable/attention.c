#include "attention.h"

#include "gemm.h"
#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_attention_table, attention)

typedef struct {
    const sbp_attention_parameters *p;
    const sbp_attention_rows *rows;
    int64_t blocks, failed;
} attention_job;

static int64_t bytes_of(const sbp_attention_parameters *p) { return p->is_f64 ? 8 : 4; }

static char *at(const attention_job *job, const void *data, const int64_t strides[3], int64_t shared, int64_t head,
                int64_t position) {
    const int64_t batch = head / job->p->heads, one = head % job->p->heads / shared;
    return (char *)data + bytes_of(job->p) * (batch * strides[0] + one * strides[1] + position * strides[2]);
}

static char *query_at(const attention_job *job, int64_t head, int64_t position) {
    return at(job, job->p->query, job->p->query_strides, 1, head, position);
}

static char *key_at(const attention_job *job, int64_t head) {
    return at(job, job->p->key, job->p->key_strides, job->p->groups, head, 0);
}

static char *value_at(const attention_job *job, int64_t head) {
    return at(job, job->p->value, job->p->value_strides, job->p->groups, head, 0);
}

static char *out_at(const attention_job *job, int64_t head, int64_t position) {
    return at(job, job->p->out, job->p->out_strides, 1, head, position);
}

static void multiply(attention_job *job, const int64_t size[3], const void *a, const int64_t a_steps[2], const void *b,
                     const int64_t b_steps[2], void *c, int64_t c_row) {
    const sbp_product p = {.is_f64 = job->p->is_f64, .batches = 1, .m = size[0], .n = size[1], .k = size[2],
                           .a = {.data = a, .line = a_steps[0], .k = a_steps[1]},
                           .b = {.data = b, .line = b_steps[0], .k = b_steps[1]},
                           .c = c, .c_row = c_row, .c_column = 1, .epilogue = {.alpha = 1}};
    if (sbp_multiply_part(&p, 0, 0, size[0], 0, size[1]))
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
}

/* One block of queries: those from `first` on, of one head. `keys` of the keys may be seen by one of them. */
typedef struct {
    int64_t head, first, count, keys;
} block;

static block block_of(const attention_job *job, int64_t head, int64_t index) {
    const sbp_attention_parameters *p = job->p;
    const int64_t first = index * SBP_QUERY_BLOCK;
    const int64_t end = first + SBP_QUERY_BLOCK < p->queries ? first + SBP_QUERY_BLOCK : p->queries;
    const block b = {head, first, end - first, p->is_causal && end < p->keys ? end : p->keys};
    return b;
}

static int64_t seen_by(const attention_job *job, const block *b, int64_t i) {
    return job->p->is_causal && b->first + i + 1 < b->keys ? b->first + i + 1 : b->keys;
}

static void make_weights(attention_job *job, const block *b, char *weights) {
    const sbp_attention_parameters *p = job->p;
    const int64_t *m = p->mask_strides, bytes = bytes_of(p);
    multiply(job, (int64_t[]){b->count, b->keys, p->size}, query_at(job, b->head, b->first),
             (int64_t[]){p->query_strides[2], 1}, key_at(job, b->head), (int64_t[]){p->key_strides[2], 1}, weights, b->keys);
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t from = b->head / p->heads * m[0] + b->head % p->heads * m[1] + (b->first + i) * m[2];
        char *log = p->log ? (char *)p->log + bytes * (b->head * p->queries + b->first + i) : 0;
        job->rows->weights(weights + bytes * i * b->keys, b->keys, seen_by(job, b, i),
                           p->mask ? (const char *)p->mask + bytes * from : 0, m[3], log);
    }
}

static void forward_share(void *context, int64_t from, int64_t to) {
    attention_job *job = context;
    const sbp_attention_parameters *p = job->p;
    char *weights = sbp_scratch(SBP_SCRATCH_FREE_1, (size_t)(bytes_of(p) * SBP_QUERY_BLOCK * p->keys));
    if (!weights) {
        job->failed = 1;
        return;
    }
    for (int64_t part = from; part < to; part++) {
        const block b = block_of(job, part / job->blocks, part % job->blocks);
        make_weights(job, &b, weights);
        multiply(job, (int64_t[]){b.count, p->value_size, b.keys}, weights, (int64_t[]){b.keys, 1},
                 value_at(job, b.head), (int64_t[]){1, p->value_strides[2]}, out_at(job, b.head, b.first), p->out_strides[2]);
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
    const sbp_attention_parameters *p = job->p;
    const int64_t bytes = bytes_of(p);
    char *weights = memory, *slopes = weights + bytes * SBP_QUERY_BLOCK * p->keys;
    char *spare = slopes + bytes * SBP_QUERY_BLOCK * p->keys;
    char *of_query = (char *)p->of_query + bytes * (b->head * p->queries + b->first) * p->size;
    char *of_key = (char *)p->of_key + bytes * b->head * p->keys * p->size;
    char *of_value = (char *)p->of_value + bytes * b->head * p->keys * p->value_size;
    const char *grad = out_at(job, b->head, b->first);
    make_weights(job, b, weights);
    add_products(job, b, weights, grad, (int64_t[]){p->value_size, p->out_strides[2]}, of_value, spare);
    multiply(job, (int64_t[]){b->count, b->keys, p->value_size}, grad, (int64_t[]){p->out_strides[2], 1},
             value_at(job, b->head), (int64_t[]){p->value_strides[2], 1}, slopes, b->keys);
    for (int64_t i = 0; i < b->count; i++)
        job->rows->slopes(slopes + bytes * i * b->keys, weights + bytes * i * b->keys, b->keys, seen_by(job, b, i));
    multiply(job, (int64_t[]){b->count, p->size, b->keys}, slopes, (int64_t[]){b->keys, 1}, key_at(job, b->head),
             (int64_t[]){1, p->key_strides[2]}, of_query, p->size);
    add_products(job, b, slopes, query_at(job, b->head, b->first), (int64_t[]){p->size, p->query_strides[2]}, of_key, spare);
}

static void backward_share(void *context, int64_t from, int64_t to) {
    attention_job *job = context;
    const sbp_attention_parameters *p = job->p;
    const int64_t widest = p->size > p->value_size ? p->size : p->value_size;
    char *memory = sbp_scratch(SBP_SCRATCH_FREE_1,
                               (size_t)(bytes_of(p) * p->keys * (2 * SBP_QUERY_BLOCK + widest)));
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

int64_t samebits_portable_attention(const sbp_attention_parameters *p) {
    const sbp_attention_table *table = attention_now();
    attention_job job = {p, p->is_f64 ? &table->f64 : &table->f32,
                         (p->queries + SBP_QUERY_BLOCK - 1) / SBP_QUERY_BLOCK, 0};
    if (p->is_backward)
        sbp_share_out(p->all_heads, 1, backward_share, &job);
    else
        sbp_share_out(p->all_heads * job.blocks, 1, forward_share, &job);
    return job.failed ? SBP_NO_MEMORY : 0;
}
