#include "reduce.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "portable.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_reduce_table, reduce)

#define MOST_AXES 64
#define SUMS_ON_STACK 1024

/* Strides in elements; `out` is that of the output, and of m. */
typedef struct {
    int64_t size, a, b, out;
} axis;

typedef struct {
    int kind, kept, reduced, failed;
    int64_t size, outputs, n, chunks;
    const char *a, *b, *m;
    char *out, *partials;
    axis keep[MOST_AXES], over[MOST_AXES];
    const sbp_reduce_of *kernels;
    axis columns; /* the axis whose outputs are computed side by side, taken out of `keep` */
    int64_t outer, blocks, width;
    int in_lines; /* they are rows of lines of 16 values */
} job;

/* Adds an axis inside the last one, as part of it where memory allows. */
static int add_axis(axis *axes, int count, axis next) {
    if (next.size == 1)
        return count;
    if (count) {
        axis *last = &axes[count - 1];
        if (last->a == next.a * next.size && last->b == next.b * next.size && last->out == next.out * next.size) {
            next.size *= last->size;
            *last = next;
            return count;
        }
    }
    axes[count] = next;
    return count + 1;
}

static void read_job(job *j, const sbp_reduce_parameters *p, const int64_t *sizes) {
    const int64_t axes = p->axes;
    int64_t out[MOST_AXES], inner = 1;
    memset(j, 0, offsetof(job, keep));
    j->kind = (int)p->kind;
    j->size = p->is_f64 ? 8 : 4;
    j->a = p->a;
    j->b = p->b;
    j->m = p->mean;
    j->out = p->out;
    j->kernels = p->is_f64 ? &reduce_now()->f64 : &reduce_now()->f32;
    j->n = 1;
    for (int64_t d = axes - 1; d >= 0; d--) {
        out[d] = p->reduced >> d & 1 ? 0 : inner;
        *(p->reduced >> d & 1 ? &j->n : &inner) *= sizes[d];
    }
    for (int64_t d = 0; d < axes; d++) {
        const axis next = {sizes[d], sizes[axes + d], j->b ? sizes[2 * axes + d] : 0, out[d]};
        if (p->reduced >> d & 1)
            j->reduced = add_axis(j->over, j->reduced, next);
        else
            j->kept = add_axis(j->keep, j->kept, next);
    }
    j->outputs = inner;
    j->chunks = (j->n + SBP_CHUNK - 1) / SBP_CHUNK;
}

static int64_t chunk_length(const job *j, int64_t chunk) {
    const int64_t left = j->n - chunk * SBP_CHUNK;
    return left < SBP_CHUNK ? left : SBP_CHUNK;
}

static int64_t stride_of(const axis *x, int of_b) { return of_b ? x->b : x->a; }

/* The offsets (in elements) of an output's values in a and b, and of the output in out. */
static axis locate(const axis *axes, int count, int64_t index) {
    axis at = {0, 0, 0, 0};
    for (int d = count - 1; d >= 0; d--) {
        const int64_t i = index % axes[d].size;
        index /= axes[d].size;
        at.a += i * axes[d].a;
        at.b += i * axes[d].b;
        at.out += i * axes[d].out;
    }
    return at;
}

static void copy_run(char *to, const char *from, int64_t n, int64_t stride, int64_t size) {
    if (stride == 1)
        memcpy(to, from, (size_t)(n * size));
    else if (size == 4)
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = ((const float *)from)[i * stride];
    else
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] = ((const double *)from)[i * stride];
}

/* A chunk's values next to each other: in place, or copied to `buffer`. */
static const char *chunk_at(const job *j, const char *base, int of_b, int64_t chunk, char *buffer) {
    const int64_t n = chunk_length(j, chunk);
    if (!base || !j->reduced)
        return base;
    const axis *inner = &j->over[j->reduced - 1];
    int64_t run = chunk * SBP_CHUNK / inner->size, at = chunk * SBP_CHUNK % inner->size;
    for (int64_t done = 0; done < n; run++, at = 0) {
        const axis two = {0, run * j->over[0].a, run * j->over[0].b, 0}; /* the usual case, without a division */
        const axis start = j->reduced == 2 ? two : locate(j->over, j->reduced - 1, run);
        const char *from = base + j->size * ((of_b ? start.b : start.a) + at * stride_of(inner, of_b));
        const int64_t take = inner->size - at < n - done ? inner->size - at : n - done;
        if (take == n && stride_of(inner, of_b) == 1)
            return from;
        copy_run(buffer + j->size * done, from, take, stride_of(inner, of_b), j->size);
        done += take;
    }
    return buffer;
}

static void sum_chunk(const job *j, axis at, int64_t chunk, char *to) {
    double a_buffer[SBP_CHUNK], b_buffer[SBP_CHUNK];
    const char *a = chunk_at(j, j->a + j->size * at.a, 0, chunk, (char *)a_buffer);
    const char *b = chunk_at(j, j->b ? j->b + j->size * at.b : NULL, 1, chunk, (char *)b_buffer);
    const sbp_chunks c = {j->kind, a, b, j->m + j->size * at.out, 0, 0, 0, 1, chunk_length(j, chunk), NULL, NULL, to};
    j->kernels->rows(&c);
}

/* Tells whether the reduced values of an output lie next to each other. */
static int is_direct(const job *j) {
    return !j->reduced || (j->reduced == 1 && j->over[0].a == 1 && (!j->b || j->over[0].b == 1));
}

static void sum_chunks(const job *j, axis at, int64_t from, int64_t to, char *sums) {
    const int64_t full = is_direct(j) ? (j->n / SBP_CHUNK < to ? j->n / SBP_CHUNK : to) : from;
    if (full > from) {
        const int64_t start = from * SBP_CHUNK * j->size;
        const sbp_chunks c = {j->kind,
                              j->a + j->size * at.a + start,
                              j->b ? j->b + j->size * at.b + start : NULL,
                              j->m + j->size * at.out,
                              SBP_CHUNK,
                              SBP_CHUNK,
                              0,
                              full - from,
                              SBP_CHUNK,
                              NULL,
                              NULL,
                              sums};
        j->kernels->rows(&c);
    }
    for (int64_t chunk = full > from ? full : from; chunk < to; chunk++)
        sum_chunk(j, at, chunk, sums + j->size * (chunk - from));
}

static void share_outputs(void *context, int64_t from, int64_t to) {
    job *j = context;
    double on_stack[SUMS_ON_STACK];
    char *sums = j->chunks > SUMS_ON_STACK ? malloc((size_t)(j->chunks * j->size)) : (char *)on_stack;
    if (!sums) {
        j->failed = 1;
        return;
    }
    for (int64_t output = from; output < to; output++) {
        const axis at = locate(j->keep, j->kept, output);
        sum_chunks(j, at, 0, j->chunks, sums);
        j->kernels->tree(j->kind, sums, j->chunks, 1);
        memcpy(j->out + j->size * at.out, sums, (size_t)j->size);
    }
    if (sums != (char *)on_stack)
        free(sums);
}

/* Outputs of values that lie in one piece: many at a time. */
static void share_rows(void *context, int64_t from, int64_t to) {
    const job *j = context;
    const axis one = {1, 0, 0, 1}, *inner = j->kept ? &j->keep[j->kept - 1] : &one;
    while (from < to) {
        const int64_t left = inner->size - from % inner->size, count = left < to - from ? left : to - from;
        const axis at = locate(j->keep, j->kept, from);
        const sbp_chunks c = {j->kind,
                              j->a + j->size * at.a,
                              j->b ? j->b + j->size * at.b : NULL,
                              j->m + j->size * at.out,
                              inner->a,
                              inner->b,
                              1,
                              count,
                              j->n,
                              NULL,
                              NULL,
                              j->out + j->size * at.out};
        j->kernels->rows(&c);
        from += count;
    }
}

static void share_chunks(void *context, int64_t from, int64_t to) {
    const job *j = context;
    while (from < to) {
        const int64_t output = from / j->chunks, chunk = from % j->chunks;
        const int64_t count = j->chunks - chunk < to - from ? j->chunks - chunk : to - from;
        sum_chunks(j, locate(j->keep, j->kept, output), chunk, chunk + count, j->partials + j->size * from);
        from += count;
    }
}

static int64_t reduce_rows(job *j) {
    const int64_t least = 1 + 16384 / j->n;
    const int many = j->chunks == 1 || j->outputs >= 4 * sbp_threads();
    if (many && is_direct(j)) {
        sbp_share_out(j->outputs, least, share_rows, j);
        return 0;
    }
    if (many) {
        sbp_share_out(j->outputs, least, share_outputs, j);
        return j->failed ? SBP_NO_MEMORY : 0;
    }
    j->partials = malloc((size_t)(j->outputs * j->chunks * j->size));
    if (!j->partials)
        return SBP_NO_MEMORY;
    sbp_share_out(j->outputs * j->chunks, 64, share_chunks, j);
    for (int64_t output = 0; output < j->outputs; output++) {
        char *sums = j->partials + j->size * output * j->chunks;
        j->kernels->tree(j->kind, sums, j->chunks, 1);
        memcpy(j->out + j->size * locate(j->keep, j->kept, output).out, sums, (size_t)j->size);
    }
    free(j->partials);
    return 0;
}

static int64_t block_width(const job *j, int64_t block) {
    const int64_t left = j->columns.size - block * j->width;
    return left < j->width ? left : j->width;
}

static char *block_sums(const job *j, int64_t group, int64_t chunk) {
    return j->partials + j->size * (group * j->chunks * j->width + chunk * block_width(j, group % j->blocks));
}

static void put_block(const job *j, int64_t group, const char *values) {
    const int64_t block = group % j->blocks, width = block_width(j, block);
    char *to = j->out + j->size * (locate(j->keep, j->kept, group / j->blocks).out + block * j->width * j->columns.out);
    for (int64_t i = 0; i < width; i++)
        memcpy(to + j->size * i * j->columns.out, values + j->size * i, (size_t)j->size);
}

/* Sets the offset of each row (each line) of a chunk from the first one. */
static void find_offsets(const job *j, int64_t chunk, int64_t *a, int64_t *b) {
    const int64_t first = chunk * SBP_CHUNK, step = j->in_lines ? SBP_LANES : 1, n = chunk_length(j, chunk);
    const axis start = locate(j->over, j->reduced, first);
    for (int64_t i = 0; i * step < n; i++) {
        const axis at = locate(j->over, j->reduced, first + i * step);
        a[i] = at.a - start.a;
        b[i] = at.b - start.b;
    }
}

/* Tells whether the values of a chunk lie in one piece, in rows that are made of lines. */
static int is_whole(const job *j, int64_t chunk) {
    const int64_t run = j->over[j->reduced - 1].size;
    return j->in_lines && chunk * SBP_CHUNK % run + chunk_length(j, chunk) <= run;
}

/* Parts are chunk by chunk, all blocks of columns (`groups`) of each, so that a thread walks through memory in order. */
static void share_columns(void *context, int64_t from, int64_t to) {
    const job *j = context;
    const int64_t groups = j->outer * j->blocks;
    int64_t a_offsets[SBP_CHUNK], b_offsets[SBP_CHUNK], known = -1;
    double one_block[SBP_COLUMNS];
    axis row = {0, 0, 0, 0};
    int scattered = 0;
    for (; from < to; from++) {
        const int64_t chunk = from / groups, group = from % groups, column = group % j->blocks * j->width;
        const axis at = locate(j->keep, j->kept, group / j->blocks);
        if (chunk != known) {
            row = locate(j->over, j->reduced, chunk * SBP_CHUNK);
            scattered = j->reduced > 1 && !is_whole(j, chunk);
            if (scattered)
                find_offsets(j, chunk, a_offsets, b_offsets);
            known = chunk;
        }
        char *to_block = j->partials ? block_sums(j, group, chunk) : (char *)one_block;
        const axis *step = j->in_lines ? &j->columns : &j->over[0];
        const sbp_chunks c = {j->kind,
                              j->a + j->size * (at.a + row.a + column * j->columns.a),
                              j->b ? j->b + j->size * (at.b + row.b + column * j->columns.b) : NULL,
                              j->m + j->size * (at.out + column * j->columns.out),
                              step->a,
                              step->b,
                              j->columns.out,
                              block_width(j, group % j->blocks),
                              chunk_length(j, chunk),
                              scattered ? a_offsets : NULL,
                              scattered ? b_offsets : NULL,
                              to_block};
        (j->in_lines ? j->kernels->rows : j->kernels->columns)(&c);
        if (!j->partials)
            put_block(j, group, to_block);
    }
}

static void share_trees(void *context, int64_t from, int64_t to) {
    const job *j = context;
    for (; from < to; from++) {
        char *sums = block_sums(j, from, 0);
        j->kernels->tree(j->kind, sums, j->chunks, block_width(j, from % j->blocks));
        put_block(j, from, sums);
    }
}

static int64_t reduce_columns(job *j) {
    const int64_t size = j->columns.size, full = (size + SBP_COLUMNS - 1) / SBP_COLUMNS;
    j->width = ((size + full - 1) / full + SBP_LANES - 1) / SBP_LANES * SBP_LANES; /* blocks are alike */
    j->blocks = (size + j->width - 1) / j->width;
    j->outer = j->outputs / size;
    const int64_t groups = j->outer * j->blocks, each = (j->n < SBP_CHUNK ? j->n : SBP_CHUNK) * j->width;
    if (j->chunks > 1 && !(j->partials = malloc((size_t)(groups * j->chunks * j->width * j->size))))
        return SBP_NO_MEMORY;
    sbp_share_out(groups * j->chunks, 1 + 32768 / each, share_columns, j);
    if (j->partials)
        sbp_share_out(groups, 1 + 16384 / (j->chunks * j->width), share_trees, j);
    free(j->partials);
    return 0;
}

/* Tells whether the reduced values are scattered lines of 16, all of them whole. */
static int has_lines(const job *j) {
    const axis *inner = &j->over[j->reduced > 0 ? j->reduced - 1 : 0];
    return j->reduced > 1 && inner->a == 1 && (!j->b || inner->b == 1) && inner->size % SBP_LANES == 0;
}

/* Returns the axis of the outputs to work on side by side, -1 to go along the reduced ones. */
static int find_columns(const job *j) {
    const axis *inner = j->reduced ? &j->over[j->reduced - 1] : NULL;
    if (!inner || (inner->a == 1 && (!j->b || inner->b == 1)))
        return -1;
    for (int d = j->kept - 1; d >= 0; d--)
        if (j->keep[d].size >= 4 && j->keep[d].a == 1 && (!j->b || j->keep[d].b == 1))
            return d;
    return -1;
}

static void take_columns(job *j, int which) {
    const axis one = {1, 0, 0, 1};
    j->columns = which < 0 ? one : j->keep[which];
    if (which >= 0)
        memmove(j->keep + which, j->keep + which + 1, (size_t)(--j->kept - which) * sizeof(axis));
}

int64_t sbp_reduce(const sbp_reduce_parameters *p, const int64_t *extents) {
    job j;
    read_job(&j, p, extents);
    j.in_lines = has_lines(&j);
    const int columns = j.in_lines ? j.kept - 1 : find_columns(&j);
    if (columns < 0 && !j.in_lines)
        return reduce_rows(&j);
    take_columns(&j, columns);
    return reduce_columns(&j);
}

int64_t samebits_portable_reduce(const sbp_reduce_parameters *p) { return sbp_reduce(p, p->extents); }
