#include "linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_linalg_table, linalg)

/* A matrix, or a part of one, with its strides in elements. */
typedef struct {
    char *data;
    int64_t row, column;
} part;

/* What the work on the matrices of a batch has in common. Each run of them on a thread has a copy. */
typedef struct linalg_job linalg_job;
struct linalg_job {
    const void *parameters;
    void (*one)(linalg_job *job, int64_t index);
    int64_t is_f64, count; /* `count`: of the values that a matrix needs memory for */
    int *failed;
    const sbp_linalg_kernels *kernels;
    char *sums;
};

static int64_t bytes_of(const linalg_job *job) { return job->is_f64 ? 8 : 4; }

static part at(const linalg_job *job, part a, int64_t i, int64_t j) {
    a.data += bytes_of(job) * (i * a.row + j * a.column);
    return a;
}

static double value_of(const linalg_job *job, const char *a) { return job->is_f64 ? *(const double *)a : *(const float *)a; }

static void set(const linalg_job *job, char *a, double value) {
    if (job->is_f64)
        *(double *)a = value;
    else
        *(float *)a = (float)value;
}

/* c = a b, of (m, k) and (k, n); c's rows are n apart. */
static void multiply(const linalg_job *job, const int64_t size[3], part a, part b, char *c) {
    const sbp_product p = {.is_f64 = job->is_f64, .batches = 1, .m = size[0], .n = size[1], .k = size[2],
                           .a = {.data = a.data, .line = a.row, .k = a.column},
                           .b = {.data = b.data, .line = b.column, .k = b.row},
                           .c = c, .c_row = size[1], .c_column = 1, .epilogue = {.alpha = 1}};
    if (sbp_multiply(&p))
        __atomic_store_n(job->failed, 1, __ATOMIC_RELAXED);
}

static void do_matrices(void *context, int64_t from, int64_t to) {
    linalg_job job = *(const linalg_job *)context;
    job.kernels = job.is_f64 ? &linalg_now()->f64 : &linalg_now()->f32;
    job.sums = malloc((size_t)(job.count * bytes_of(&job) + 1));
    if (!job.sums)
        __atomic_store_n(job.failed, 1, __ATOMIC_RELAXED);
    for (; job.sums && from < to; from++)
        job.one(&job, from);
    free(job.sums);
}

#define WORTH_A_THREAD 200000 /* multiplications */

/* Small matrices share threads out among themselves, large ones each take all. */
static int64_t do_batch(linalg_job job, int64_t batch, double work) {
    int failed = 0;
    job.failed = &failed;
    if (batch < sbp_threads())
        do_matrices(&job, 0, batch);
    else
        sbp_share_out(batch, work < WORTH_A_THREAD ? 1 + (int64_t)(WORTH_A_THREAD / (1 + work)) : 1, do_matrices, &job);
    return failed ? SBP_NO_MEMORY : 0;
}

/* ---- Reflections ---- */

typedef struct {
    const linalg_job *job;
    part rows;
    int64_t n;
    char *v;
    double tau;
} reflect_job;

static void do_rows(void *context, int64_t from, int64_t to) {
    const reflect_job *r = context;
    r->job->kernels->reflect(at(r->job, r->rows, from, 0).data, r->rows.row, to - from, r->n,
                             r->v + from * bytes_of(r->job), r->tau, r->job->sums);
}

/* Subtracts (v tau) (v^T rows) from m rows. */
static void reflect(reflect_job r, int64_t m) {
    if (m <= 0 || r.n <= 0)
        return;
    multiply(r.job, (int64_t[]){1, r.n, m}, (part){r.v, 0, 1}, r.rows, r.job->sums);
    sbp_share_out(m, 1 + 65536 / r.n, do_rows, &r);
}

static double make_reflection(const linalg_job *job, part column, int64_t m, char *v) {
    const int64_t bytes = bytes_of(job);
    char sum[8] = {0}, *rest = v + bytes;
    for (int64_t i = 1; i < m; i++)
        memcpy(v + i * bytes, at(job, column, i, 0).data, (size_t)bytes);
    if (m > 1)
        multiply(job, (int64_t[]){1, 1, m - 1}, (part){rest, 0, 1}, (part){rest, 1, 0}, sum);
    return job->kernels->reflection(column.data, column.row, m, value_of(job, sum), v);
}

static void reflect_columns(linalg_job *job, int64_t index) {
    const sbp_householder_parameters *p = job->parameters;
    const int64_t bytes = bytes_of(job), count = p->rows < p->columns ? p->rows : p->columns;
    const part work = {(char *)p->work + bytes * index * p->rows * p->columns, p->columns, 1};
    char *v = (char *)p->v + bytes * index * count * p->rows, *tau = (char *)p->tau + bytes * index * count;
    for (int64_t j = 0; j < count; j++, v += bytes * (p->rows + 1)) {
        const double factor = make_reflection(job, at(job, work, j, j), p->rows - j, v);
        set(job, tau + bytes * j, factor);
        reflect((reflect_job){job, at(job, work, j, j + 1), p->columns - j - 1, v, factor}, p->rows - j);
    }
}

int64_t samebits_portable_householder(const sbp_householder_parameters *p) {
    const linalg_job job = {p, reflect_columns, p->is_f64, p->columns, 0, 0, 0};
    return do_batch(job, p->batch, (double)p->rows * p->columns * p->columns);
}

static void multiply_reflections(linalg_job *job, int64_t index) {
    const sbp_reflections_parameters *p = job->parameters;
    const int64_t bytes = bytes_of(job);
    const part q = {(char *)p->q + bytes * index * p->rows * p->columns, p->columns, 1};
    for (int64_t j = p->steps - 1; j >= 0; j--) {
        char *v = (char *)p->v + bytes * ((index * p->steps + j) * p->rows + j);
        const double tau = value_of(job, (const char *)p->tau + bytes * (index * p->steps + j));
        reflect((reflect_job){job, at(job, q, j, j), p->columns - j, v, tau}, p->rows - j);
    }
}

int64_t samebits_portable_reflections(const sbp_reflections_parameters *p) {
    const linalg_job job = {p, multiply_reflections, p->is_f64, p->columns, 0, 0, 0};
    return do_batch(job, p->batch, (double)p->rows * p->columns * p->steps);
}

/* ---- Factors ---- */

/* Subtracts a b, which is one column or one row, from x. */
static void take_sums(const linalg_job *job, const int64_t size[3], part a, part b, part x) {
    const int64_t is_row = size[0] == 1;
    multiply(job, size, a, b, job->sums);
    job->kernels->subtract(x.data, is_row ? x.column : x.row, is_row ? size[1] : size[0], job->sums);
}

static void do_cholesky(linalg_job *job, int64_t index) {
    const sbp_cholesky_parameters *p = job->parameters;
    const int64_t n = p->n, bytes = bytes_of(job);
    const part x = {(char *)p->x + bytes * index * n * n, n, 1}, out = {(char *)p->out + bytes * index * n * n, n, 1};
    int64_t *info = (int64_t *)p->info + index;
    for (int64_t j = 0; j < n; j++) {
        const part line = at(job, out, j, 0), column = at(job, out, j, j);
        for (int64_t i = j; i < n; i++)
            memcpy(at(job, out, i, j).data, at(job, x, i, j).data, (size_t)bytes);
        if (j)
            take_sums(job, (int64_t[]){n - j, 1, j}, line, (part){line.data, 1, 0}, column);
        const double top = value_of(job, column.data), root = job->is_f64 ? sqrt(top) : sqrtf((float)top);
        if (!(top > 0) && !*info)
            *info = j + 1;
        set(job, column.data, root);
        job->kernels->divide(at(job, column, 1, 0).data, n, n - j - 1, root);
    }
}

int64_t samebits_portable_cholesky(const sbp_cholesky_parameters *p) {
    const linalg_job job = {p, do_cholesky, p->is_f64, p->n, 0, 0, 0};
    return do_batch(job, p->batch, (double)p->n * p->n * p->n / 6);
}

static void swap_rows(const linalg_job *job, part a, int64_t i, int64_t j, int64_t columns) {
    const size_t bytes = (size_t)(columns * bytes_of(job));
    char *one = at(job, a, i, 0).data, *other = at(job, a, j, 0).data;
    memcpy(job->sums, one, bytes);
    memcpy(one, other, bytes);
    memcpy(other, job->sums, bytes);
}

static void do_lu(linalg_job *job, int64_t index) {
    const sbp_lu_parameters *p = job->parameters;
    const int64_t n = p->columns, count = p->rows < n ? p->rows : n;
    const part a = {(char *)p->a + bytes_of(job) * index * p->rows * n, n, 1};
    int64_t *pivots = (int64_t *)p->pivots + index * count, *info = (int64_t *)p->info + index;
    for (int64_t k = 0; k < count; k++) {
        const part top = at(job, a, k, k), right = at(job, top, 0, 1);
        if (k)
            take_sums(job, (int64_t[]){p->rows - k, 1, k}, at(job, a, k, 0), at(job, a, 0, k), top);
        const int64_t chosen = k + (p->is_pivoted ? job->kernels->pivot(top.data, n, p->rows - k) : 0);
        pivots[k] = chosen + 1;
        if (chosen != k)
            swap_rows(job, a, k, chosen, n);
        if (k && k + 1 < n)
            take_sums(job, (int64_t[]){1, n - k - 1, k}, at(job, a, k, 0), at(job, a, 0, k + 1), right);
        const double value = value_of(job, top.data);
        if (value != 0)
            job->kernels->divide(at(job, top, 1, 0).data, n, p->rows - k - 1, value);
        else if (!*info)
            *info = k + 1;
    }
}

int64_t samebits_portable_lu(const sbp_lu_parameters *p) {
    const linalg_job job = {p, do_lu, p->is_f64, p->rows > p->columns ? p->rows : p->columns, 0, 0, 0};
    return do_batch(job, p->batch, (double)p->rows * p->columns * p->columns / 3);
}

static void do_triangular(linalg_job *job, int64_t index) {
    const sbp_triangular_parameters *p = job->parameters;
    const int64_t n = p->n, bytes = bytes_of(job);
    const part a = {(char *)p->a + bytes * index * p->a_strides[2], p->a_strides[0], p->a_strides[1]};
    const part x = {(char *)p->x + bytes * index * n * p->columns, p->columns, 1};
    for (int64_t step = 0; step < n; step++) {
        const int64_t i = p->is_upper ? n - 1 - step : step, known = p->is_upper ? i + 1 : 0;
        const part row = at(job, x, i, 0);
        if (step)
            take_sums(job, (int64_t[]){1, p->columns, step}, at(job, a, i, known), at(job, x, known, 0), row);
        if (!p->is_unit)
            job->kernels->divide(row.data, 1, p->columns, value_of(job, at(job, a, i, i).data));
    }
}

int64_t samebits_portable_triangular(const sbp_triangular_parameters *p) {
    const linalg_job job = {p, do_triangular, p->is_f64, p->columns, 0, 0, 0};
    return do_batch(job, p->batch, (double)p->n * p->n * p->columns / 2);
}
