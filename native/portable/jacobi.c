#include "jacobi.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "portable.h"
#include "reduce.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_jacobi_table, jacobi)

#define NEAR_BYTES (24 << 10) /* of rows that stay in the first level cache */
#define SHARED_ROWS 96        /* a matrix of fewer rows is rotated by one thread: threads wait for each other often */
#define BLOCKS 4              /* of rows, for each thread */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Pairs of several stages ---- */

typedef struct {
    const sbp_jacobi *matrix;
    int64_t n;
    int turned;
    int64_t from, to, blocks; /* the stages of a band, and into how many blocks rows are cut */
} sweep;

/* Pairs of stages from .. to - 1: those whose first row is at least `left` and below `right`, bounds that move by so
 * many rows with each stage. */
typedef struct {
    int64_t from, to, left, left_step, right, right_step;
} region;

static void do_stages(sweep *s, const region *r) {
    int turned = 0;
    for (int64_t t = r->from; t < r->to; t++) {
        const int64_t left = r->left + (t - r->from) * r->left_step, right = r->right + (t - r->from) * r->right_step;
        for (int64_t at = left + ((left ^ t) & 1), count; at < right; at += 2 * count) {
            count = least((right - at + 1) / 2, SBP_JACOBI_PAIRS);
            turned |= jacobi_now()->pairs(s->matrix, at, count);
        }
    }
    if (turned)
        __atomic_store_n(&s->turned, 1, __ATOMIC_RELAXED);
}

/* A pair needs the pairs of the stage before that have one of its rows, and no others: what comes when is free beside
 * that. So a region is cut until its rows stay in the cache for all its stages: where it is wide, along a line that
 * goes left by one row with each stage (the left part needs nothing of the right one), else between two stages. */
static void do_region(sweep *s, const region *r) {
    const int64_t height = r->to - r->from, left = r->left + height * r->left_step;
    const int64_t right = r->right + height * r->right_step, middle = (r->left + r->right + left + right + 2 * height) / 4;
    const int64_t widest = r->right - r->left > right - left ? r->right - r->left : right - left;
    region one = *r, other = *r;
    if (height < 2 || (widest + 1) * s->matrix->length * (int64_t)sizeof(double) <= NEAR_BYTES) {
        do_stages(s, r);
        return;
    }
    if (r->right - r->left + right - left >= 4 * height) {
        one.right = other.left = middle;
        one.right_step = other.left_step = -1;
    } else {
        other.from = one.to = r->from + height / 2;
        other.left += height / 2 * r->left_step;
        other.right += height / 2 * r->right_step;
    }
    do_region(s, &one);
    do_region(s, &other);
}

/* ---- On several threads ---- */

static int64_t bound(const sweep *s, int64_t i) { return (s->n - 1) * i / s->blocks; }

/* What of a band needs one block of rows only: it becomes narrower by a row at each inner end with each stage. */
static void do_blocks(void *context, int64_t from, int64_t to) {
    sweep *s = context;
    for (; from < to; from++) {
        const region r = {s->from, s->to, bound(s, from), from > 0, bound(s, from + 1), -(from + 1 < s->blocks)};
        do_region(s, &r);
    }
}

/* What is left of it, around the bounds between blocks. */
static void do_bounds(void *context, int64_t from, int64_t to) {
    sweep *s = context;
    for (; from < to; from++) {
        const region r = {s->from, s->to, bound(s, from + 1), -1, bound(s, from + 1), 1};
        do_region(s, &r);
    }
}

static void do_sweep(sweep *s, int threads) {
    s->turned = 0;
    s->blocks = threads > 1 && s->n >= SHARED_ROWS ? least(BLOCKS * threads, s->n / 16) : 1;
    const int64_t height = s->blocks > 1 ? (s->n - 1) / s->blocks / 2 : s->n;
    for (s->from = 0; s->from < s->n; s->from = s->to) {
        s->to = least(s->from + height, s->n);
        sbp_share_out(s->blocks, 1, do_blocks, s);
        sbp_share_out(s->blocks - 1, 1, do_bounds, s);
    }
}

/* ---- Matrices ---- */

typedef struct {
    const sbp_jacobi_parameters *p;
    int64_t width, length, line; /* of a row here: the last leaves lines of the cache between rows */
    int threads, failed;
} jacobi_job;

static int64_t filled(int64_t n) { return (n + SBP_LANES - 1) / SBP_LANES * SBP_LANES; }

static void bring(const jacobi_job *job, double *to, const double *from) {
    const sbp_jacobi_parameters *p = job->p;
    memset(to, 0, (size_t)job->length * sizeof *to);
    memcpy(to, from, (size_t)p->width * sizeof *to);
    memcpy(to + job->width, from + p->width, (size_t)(p->length - p->width) * sizeof *to);
}

static void bring_back(const jacobi_job *job, double *to, const double *from) {
    const sbp_jacobi_parameters *p = job->p;
    memcpy(to, from, (size_t)p->width * sizeof *to);
    memcpy(to + p->width, from + job->width, (size_t)(p->length - p->width) * sizeof *to);
}

/* Sweeps until one has nothing to rotate: the rows then have the order from before it, which `before` holds. Returns
 * whether there was one. */
static int do_sweeps(const jacobi_job *job, const sbp_jacobi *matrix, double **before) {
    const int64_t n = job->p->n;
    sweep s = {matrix, n, 1, 0, 0, 0};
    for (int64_t i = 0; i < job->p->most_sweeps && s.turned; i++) {
        memcpy(before, matrix->rows, (size_t)n * sizeof *before);
        do_sweep(&s, job->threads);
    }
    if (!s.turned)
        memcpy(matrix->rows, before, (size_t)n * sizeof *before);
    return !s.turned;
}

static int do_matrix(const jacobi_job *job, int64_t index) {
    const sbp_jacobi_parameters *p = job->p;
    const int64_t n = p->n;
    double *of = (double *)p->rows + index * n * p->length;
    double **rows = malloc((size_t)n * 2 * sizeof *rows), *memory = aligned_alloc(64, (size_t)(n * job->line) * 8);
    if (rows && memory) {
        for (int64_t i = 0; i < n; i++)
            bring(job, rows[i] = memory + i * job->line, of + i * p->length);
        const sbp_jacobi matrix = {rows, job->width, job->length, p->limits ? job->width : 0,
                                   p->limits ? ((const double *)p->limits)[index] : 0, p->tolerance};
        ((int64_t *)p->done)[index] = do_sweeps(job, &matrix, rows + n);
        for (int64_t i = 0; i < n; i++)
            bring_back(job, of + i * p->length, rows[i]);
    }
    const int failed = !rows || !memory;
    free(rows);
    free(memory);
    return failed;
}

static void do_matrices(void *context, int64_t from, int64_t to) {
    jacobi_job *job = context;
    for (; from < to; from++)
        if (do_matrix(job, from))
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
}

int64_t samebits_portable_jacobi(const sbp_jacobi_parameters *p) {
    jacobi_job job = {p, filled(p->width), 0, 0, sbp_threads(), 0};
    job.length = job.width + filled(p->length - p->width);
    job.line = job.length + SBP_LANES;
    if (p->batch < job.threads && p->n >= SHARED_ROWS) {
        do_matrices(&job, 0, p->batch);
    } else {
        job.threads = 1;
        sbp_share_out(p->batch, 1 + 4096 / (1 + p->n * p->n * p->n), do_matrices, &job);
    }
    return job.failed ? SBP_NO_MEMORY : 0;
}
