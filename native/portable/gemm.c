#include "gemm.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_gemm_table, gemm)

/* Bytes of packed rows, and of packed columns, that stay in the second level cache. */
#define A_BYTES (128 << 10)
#define B_BYTES (1 << 20)
/* Columns next to each other are read where they are if steps of k are so near to each other, or few rows use them:
 * otherwise they evict each other from the cache. */
#define NEAR_BYTES 1536
#define READ_BYTES (64 << 10)
#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address, 1)
#else
#define PREFETCH(address) (void)(address)
#endif
#define SLACK 64 /* elements that packing may write beyond its panels */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* A part of one matrix of the batch, with what all its tiles have in common. */
typedef struct {
    const sbp_product *p;
    const sbp_gemm_kernels *kernels;
    sbp_operand a, b;
    sbp_pack pack_a, pack_b;
    const void *context_a, *context_b;
    int64_t batch, m_from, m_to, n_from, n_to;
    int64_t width_a, width_b; /* of panels */
    int64_t k_block;
    char *packed_a, *packed_b;
    int keeps_b, reads_b; /* packed columns serve several blocks of rows; columns are read where they are */
} work;

static const sbp_gemm_kernels *kernels_for(int64_t is_f64) { return is_f64 ? gemm_now()->f64 : gemm_now()->f32; }

static const sbp_gemm_kernels *kernels_of(const sbp_product *p) { return kernels_for(p->is_f64); }

static char *c_at(const work *w, int64_t i, int64_t j) {
    const sbp_product *p = w->p;
    return (char *)p->c + w->kernels->size * (w->batch * p->c_batch + i * p->c_row + j * p->c_column);
}

static void copy_tile(int64_t size, int64_t rows, int64_t columns, char *to, int64_t to_row, int64_t to_column,
                      const char *from, int64_t from_row, int64_t from_column) {
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            if (size == 4)
                memcpy(to + 4 * (i * to_row + j * to_column), from + 4 * (i * from_row + j * from_column), 4);
            else
                memcpy(to + 8 * (i * to_row + j * to_column), from + 8 * (i * from_row + j * from_column), 8);
}

static void do_chains(const work *w, sbp_tile tile, int64_t k, const char *a, const char *b, int64_t b_row, char *c,
                      int64_t c_row, int first, int64_t rows, int64_t row_bytes) {
    const int64_t size = w->kernels->size, block = w->k_block;
    for (int64_t i = 0; i < rows; i++) /* it is needed after the first block only */
        for (int64_t at = 0; at < row_bytes; at += 64)
            PREFETCH(c + i * c_row * size + at);
    for (; k > 0; k -= block, first = 0) {
        tile(least(k, block), a, w->width_a, b, b_row, c, c_row, first);
        a += size * block * w->width_a;
        b += size * block * b_row;
    }
}

/* Tiles at c's right edge, and all if its columns are not next to each other, are made beside it. */
static void do_tile(const work *w, int64_t k, const char *a, const char *b, int64_t b_row, int64_t i, int64_t rows,
                    int64_t j, int64_t columns, int first) {
    const sbp_gemm_kernels *g = w->kernels;
    const int64_t vectors = up(columns, g->lanes), row = vectors * g->lanes, c_row = w->p->c_row, c_column = w->p->c_column;
    const sbp_tile tile = g->tiles[rows - 1][vectors - 1];
    char *c = c_at(w, i, j);
    if (row == columns && c_column == 1) {
        do_chains(w, tile, k, a, b, b_row, c, c_row, first, rows, row * g->size);
        return;
    }
    char aside[SBP_MOST_ROWS * SBP_MOST_VECTORS * 64 /* of the widest vector */] __attribute__((aligned(64)));
    if (!first)
        copy_tile(g->size, rows, columns, aside, row, 1, c, c_row, c_column);
    do_chains(w, tile, k, a, b, b_row, aside, row, first, 0, 0);
    copy_tile(g->size, rows, columns, c, c_row, c_column, aside, row, 1);
}

/* One block of packed rows by the columns of one panel. Of a panel, what belongs to one block of k stays in the first
 * level cache for all rows; tiles that are made aside are copied, so they do all their k at once. */
static void do_panel(const work *w, int64_t k, const char *b, int64_t b_row, int64_t m_from, int64_t m_to, int64_t j,
                     int64_t columns, int first) {
    const int64_t size = w->kernels->size, panel = size * w->width_a * k;
    const int64_t blocks = SBP_K_BLOCK / w->k_block * w->k_block; /* as many as are about as long as the usual one */
    const int64_t step = columns % w->kernels->lanes || w->p->c_column != 1 ? k : blocks;
    for (int64_t from = 0; from < k; from += step, b += step * b_row * size, first = 0) {
        const char *a = w->packed_a + from * size * w->width_a;
        for (int64_t i = m_from; i < m_to; i += w->width_a, a += panel)
            do_tile(w, least(step, k - from), a, b, b_row, i, least(w->width_a, m_to - i), j, columns, first);
    }
}

static int64_t panel_bytes(const sbp_product *p, int64_t width) { return kernels_of(p)->size * (p->k * width + SLACK); }

static const char *packed_column(const work *w, int64_t j, int64_t k) {
    return w->b.panels + j / w->width_b * panel_bytes(w->p, w->width_b) + w->kernels->size * k * w->width_b;
}

static void do_block(const work *w, int64_t k_from, int64_t k_to, int64_t m_from, int64_t m_to, int64_t n_from,
                     int64_t n_to) {
    const sbp_gemm_kernels *g = w->kernels;
    const int64_t k = k_to - k_from;
    w->pack_a(w->context_a, w->batch, k_from, k_to, m_from, m_to, w->width_a, w->packed_a);
    char *b = w->packed_b;
    for (int64_t j = n_from; j < n_to; j += w->width_b) {
        const int64_t columns = least(w->width_b, n_to - j);
        if (w->b.panels) {
            do_panel(w, k, packed_column(w, j, k_from), w->width_b, m_from, m_to, j, columns, !k_from);
            continue;
        }
        if (w->reads_b && columns % g->lanes == 0) {
            const char *data =
                (const char *)w->b.data + g->size * (w->batch * w->b.batch + k_from * w->b.k + j * w->b.line);
            do_panel(w, k, data, w->b.k, m_from, m_to, j, columns, !k_from);
            continue;
        }
        if (m_from == w->m_from) /* just before its first use: it is in the cache then */
            w->pack_b(w->context_b, w->batch, k_from, k_to, j, j + columns, w->width_b, b);
        do_panel(w, k, b, w->width_b, m_from, m_to, j, columns, !k_from);
        if (w->keeps_b)
            b += g->size * w->width_b * k;
    }
}

static void zero(const work *w) {
    for (int64_t i = w->m_from; i < w->m_to; i++)
        for (int64_t j = w->n_from; j < w->n_to; j++)
            memset(c_at(w, i, j), 0, (size_t)w->kernels->size);
}

static int has_epilogue(const sbp_product *p) { return p->epilogue.self || p->epilogue.alpha != 1; }

static int64_t k_panel(int64_t k_block) { return SBP_K_PANEL / k_block * k_block; }

static void do_work(const work *w, int64_t m_block, int64_t n_block) {
    const sbp_product *p = w->p;
    const int64_t panel = k_panel(w->k_block);
    for (int64_t n = w->n_from; n < w->n_to; n += n_block) {
        const int64_t n_to = least(n + n_block, w->n_to);
        for (int64_t k = 0; k < p->k; k += panel)
            for (int64_t m = w->m_from; m < w->m_to; m += m_block)
                do_block(w, k, least(k + panel, p->k), m, least(m + m_block, w->m_to), n, n_to);
    }
    if (!p->k)
        zero(w);
    if (has_epilogue(p))
        w->kernels->finish(p, w->batch, w->m_from, w->m_to, w->n_from, w->n_to);
}

static int is_read_in_place(const sbp_operand *b, int64_t rows, int64_t size) {
    const int64_t step = b->k * size;
    return b->line == 1 && (step <= NEAR_BYTES || rows * step <= READ_BYTES);
}

int sbp_multiply_part(const sbp_product *p, int64_t batch, int64_t m_from, int64_t m_to, int64_t n_from, int64_t n_to) {
    const sbp_gemm_kernels *g = kernels_of(p);
    const int64_t m = m_to - m_from, n = n_to - n_from, k_block = p->k_block ? p->k_block : SBP_K_BLOCK;
    const int64_t k = least(p->k, k_panel(k_block));
    if (m <= 0 || n <= 0)
        return 0;
    work w = {.p = p, .kernels = g, .a = p->a, .b = p->b, .pack_a = p->a.pack, .pack_b = p->b.pack,
              .context_a = p->a.context, .context_b = p->b.context, .batch = batch, .k_block = k_block,
              .m_from = m_from, .m_to = m_to, .n_from = n_from, .n_to = n_to};
    if (!w.pack_a)
        w.pack_a = g->pack, w.context_a = &w.a;
    if (!w.pack_b)
        w.pack_b = g->pack, w.context_b = &w.b, w.reads_b = is_read_in_place(&w.b, m, g->size);
    w.width_a = up(m, up(m, g->rows)); /* tiles of about the same height */
    w.width_b = w.b.panels ? w.b.width : g->lanes * least(g->vectors, up(n, g->lanes));
    const int64_t row_bytes = w.width_a * k * g->size;
    const int64_t m_block = w.width_a * (row_bytes ? 1 + A_BYTES / row_bytes : up(m, w.width_a));
    w.keeps_b = m > m_block && !w.b.panels;
    const int64_t n_block = w.keeps_b ? w.width_b * (1 + B_BYTES / (w.width_b * k * g->size)) : n;
    const int64_t kept_b = w.keeps_b ? w.width_b * up(least(n, n_block), w.width_b) : w.width_b;
    w.packed_a = sbp_scratch(SBP_SCRATCH_A, (size_t)(g->size * (w.width_a * up(least(m, m_block), w.width_a) * k + SLACK)));
    w.packed_b = sbp_scratch(SBP_SCRATCH_B, (size_t)(g->size * (kept_b * k + SLACK)));
    if (!w.packed_a || !w.packed_b)
        return SBP_NO_MEMORY;
    do_work(&w, m_block, n_block);
    return 0;
}

/* ---- Packing once ---- */

void *sbp_pack_columns(sbp_product *p) {
    const sbp_gemm_kernels *g = kernels_of(p);
    const int64_t width = g->lanes * least(g->vectors, up(p->n, g->lanes)), bytes = panel_bytes(p, width);
    char *panels = malloc((size_t)(up(p->n, width) * bytes));
    if (!panels)
        return NULL;
    for (int64_t j = 0; j < p->n; j += width)
        g->pack(&p->b, 0, 0, p->k, j, least(j + width, p->n), width, panels + j / width * bytes);
    p->b.panels = panels;
    p->b.width = width;
    return panels;
}

sbp_pack sbp_pack_of_matrix(int64_t is_f64) { return kernels_for(is_f64)->pack; }

int64_t sbp_tile_rows(int64_t is_f64) { return kernels_for(is_f64)->rows; }

/* ---- On several threads ---- */

#define WORTH_A_THREAD 200000 /* multiplications */
#define VECTOR_WORTH_A_THREAD 80000 /* they wait for memory */

typedef struct {
    const sbp_product *p;
    int64_t m_parts, n_parts;
    int failed;
} shares;

/* Bounds of part i of `parts` of n, at multiples of `step`. */
static int64_t bound(int64_t i, int64_t parts, int64_t n, int64_t step) { return least(up(n, step) * i / parts * step, n); }

static void do_shares(void *context, int64_t from, int64_t to) {
    shares *s = context;
    const sbp_product *p = s->p;
    const sbp_gemm_kernels *g = kernels_of(p);
    const int64_t columns = g->lanes * g->vectors;
    for (; from < to; from++) {
        const int64_t n = from % s->n_parts, m = from / s->n_parts % s->m_parts;
        if (sbp_multiply_part(p, from / s->n_parts / s->m_parts, bound(m, s->m_parts, p->m, g->rows),
                              bound(m + 1, s->m_parts, p->m, g->rows), bound(n, s->n_parts, p->n, columns),
                              bound(n + 1, s->n_parts, p->n, columns)))
            __atomic_store_n(&s->failed, 1, __ATOMIC_RELAXED);
    }
}

/* Cuts each matrix so that every thread has one, with as little packing as possible: each part packs its own. */
static void cut(shares *s, int64_t pieces) {
    const sbp_gemm_kernels *g = kernels_of(s->p);
    const int64_t rows = up(s->p->m, g->rows), columns = up(s->p->n, g->lanes * g->vectors);
    int64_t best = INT64_MAX;
    for (int64_t m = 1; m <= pieces; m++) {
        const int64_t n = up(pieces, m);
        if (m > rows || n > columns)
            continue;
        const int64_t longest = up(rows, m) * up(columns, n) * 16, packing = up(rows, m) + 2 * up(columns, n);
        if (longest + packing < best) {
            best = longest + packing;
            s->m_parts = m;
            s->n_parts = n;
        }
    }
}

static int multiply_tiles(const sbp_product *p) {
    const int64_t threads = sbp_threads(), work = p->batches * p->m * p->n * (p->k + 1);
    shares s = {p, 1, 1, 0};
    if (threads > 1 && work >= 2 * WORTH_A_THREAD && p->batches % threads)
        cut(&s, up(least(threads, work / WORTH_A_THREAD), p->batches));
    const int64_t parts = p->batches * s.m_parts * s.n_parts;
    sbp_share_out(parts, 1 + parts * WORTH_A_THREAD / (work + 1), do_shares, &s);
    return s.failed ? SBP_NO_MEMORY : 0;
}

/* ---- A matrix by a vector ---- */

typedef struct {
    const sbp_product *p;
    sbp_operand matrix, vector;
    int64_t count, out;
    int by_rows, failed;
} gemv_work;

static void do_vector(gemv_work *w, int64_t batch, int64_t from, int64_t to) {
    const sbp_product *p = w->p;
    const sbp_gemm_kernels *g = kernels_of(p);
    const char *x = (const char *)w->vector.data + g->size * batch * w->vector.batch;
    if (w->vector.k != 1 && p->k > 1) {
        char *packed = sbp_scratch(SBP_SCRATCH_VECTOR, (size_t)(p->k * g->size));
        if (!packed) {
            __atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        copy_tile(g->size, 1, p->k, packed, 0, 1, x, 0, w->vector.k);
        x = packed;
    }
    g->gemv(to - from, p->k, (const char *)w->matrix.data + g->size * (batch * w->matrix.batch + from * w->matrix.line),
            w->matrix.line, w->matrix.k, x, (char *)p->c + g->size * (batch * p->c_batch + from * w->out), w->out);
    if (has_epilogue(p))
        w->by_rows ? g->finish(p, batch, from, to, 0, 1) : g->finish(p, batch, 0, 1, from, to);
}

static void do_vectors(void *context, int64_t from, int64_t to) {
    gemv_work *w = context;
    while (from < to) {
        const int64_t batch = from / w->count, end = least((batch + 1) * w->count, to);
        do_vector(w, batch, from - batch * w->count, end - batch * w->count);
        from = end;
    }
}

static int multiply_vector(const sbp_product *p, int by_rows) {
    gemv_work w = {p, by_rows ? p->a : p->b, by_rows ? p->b : p->a, by_rows ? p->m : p->n,
                   by_rows ? p->c_row : p->c_column, by_rows, 0};
    sbp_share_out(p->batches * w.count, 16 + VECTOR_WORTH_A_THREAD / (p->k + 1), do_vectors, &w);
    return w.failed ? SBP_NO_MEMORY : 0;
}

static int is_matrix(const sbp_operand *o) { return !o->pack && (o->line == 1 || o->k == 1); }

int sbp_multiply(const sbp_product *p) {
    if (p->batches <= 0 || p->m <= 0 || p->n <= 0)
        return 0;
    if (p->n == 1 && is_matrix(&p->a) && !p->b.pack)
        return multiply_vector(p, 1);
    if (p->m == 1 && is_matrix(&p->b) && !p->a.pack && !p->b.panels)
        return multiply_vector(p, 0);
    return multiply_tiles(p);
}

int64_t samebits_portable_gemm(const sbp_gemm_parameters *p) {
    const int64_t *a = p->a_strides, *b = p->b_strides, *out = p->out_strides, *added = p->added_strides;
    const sbp_product product = {
        .is_f64 = p->is_f64, .batches = p->batches, .m = p->m, .n = p->n, .k = p->k,
        .a = {.data = p->a, .line = a[0], .k = a[1], .batch = a[2]},
        .b = {.data = p->b, .k = b[0], .line = b[1], .batch = b[2]},
        .c = p->out, .c_row = out[0], .c_column = out[1], .c_batch = out[2],
        .epilogue = {p->alpha, p->beta, p->added, added[0], added[1], added[2]},
    };
    return sbp_multiply(&product);
}
