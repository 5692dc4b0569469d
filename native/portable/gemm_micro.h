/* The kernels of one element type. The including file has defined T, V (a name of simd.h) and ROWS, VECTORS: those of
 * the largest tile that fits the registers. */
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define VT(op) PASTE(V, op)
#define OF(name) PASTE(PASTE(name, _), T)
#define LANES VT(_LANES)
#define SQUARE VT(_SQUARE)

SBP_INLINE void OF(tile)(int rows, int vectors, int64_t k, const T *a, int64_t a_width, const T *b, int64_t b_row, T *c,
                         int64_t c_row, int first) {
    V chain[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            chain[i][j] = VT(_zero)();
    for (; k; k--, a += a_width, b += b_row) {
        V right[VECTORS];
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            right[j] = VT(_load)(b + j * LANES);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            const V left = VT(_set)(a[i]);
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++)
                chain[i][j] = VT(_fma)(left, right[j], chain[i][j]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, c += c_row)
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++)
            VT(_store)(c + j * LANES, VT(_add)(first ? VT(_zero)() : VT(_load)(c + j * LANES), chain[i][j]));
}

#define TILE(r, v)                                                                                                    \
    static void OF(tile_##r##_##v)(int64_t k, const void *a, int64_t a_width, const void *b, int64_t b_row, void *c,  \
                                   int64_t c_row, int first) {                                                        \
        OF(tile)(r, v, k, a, a_width, b, b_row, c, c_row, first);                                                     \
    }
#if VECTORS == 3
#define TILES(r) TILE(r, 1) TILE(r, 2) TILE(r, 3)
#define TILES_OF(r) {OF(tile_##r##_1), OF(tile_##r##_2), OF(tile_##r##_3)}
#else
#define TILES(r) TILE(r, 1) TILE(r, 2)
#define TILES_OF(r) {OF(tile_##r##_1), OF(tile_##r##_2)}
#endif

TILES(1) TILES(2) TILES(3) TILES(4)
#if ROWS >= 6
TILES(5) TILES(6)
#endif
#if ROWS >= 8
TILES(7) TILES(8)
#endif

static const sbp_tile OF(tiles)[ROWS][SBP_MOST_VECTORS] = {
    TILES_OF(1), TILES_OF(2), TILES_OF(3), TILES_OF(4),
#if ROWS >= 6
    TILES_OF(5), TILES_OF(6),
#endif
#if ROWS >= 8
    TILES_OF(7), TILES_OF(8),
#endif
};

/* ---- Packing ---- */

#define STEPS_AHEAD 8 /* of k: they may lie on pages that the hardware does not read ahead */

/* Lines that are next to each other. */
static void OF(pack_beside)(const T *p, int64_t k_stride, int64_t steps, int64_t count, int64_t width, T *out) {
    for (int64_t k = 0; k < steps; k++, p += k_stride, out += width) {
        int64_t j = 0;
        for (; j < count; j += 64 / sizeof(T))
            __builtin_prefetch(p + STEPS_AHEAD * k_stride + j);
        j = 0;
        for (; j + LANES <= count; j += LANES)
            VT(_store)(out + j, VT(_load)(p + j));
        for (; j + SQUARE <= count; j += SQUARE)
            VT(_square_store)(out + j, VT(_square_load)(p + j));
        if (j < count && count >= SQUARE)
            VT(_square_store)(out + count - SQUARE, VT(_square_load)(p + count - SQUARE));
        else
            for (; j < count; j++)
                out[j] = p[j];
        for (j = count; j < width; j++)
            out[j] = 0;
    }
}

static void OF(pack_any)(const T *p, int64_t line, int64_t k_stride, int64_t steps, int64_t count, int64_t width, T *out) {
    for (int64_t k = 0; k < steps; k++)
        for (int64_t j = 0; j < width; j++)
            out[k * width + j] = j < count ? p[j * line + k * k_stride] : 0;
}

SBP_INLINE void OF(turn_square)(const T *p, int64_t line, int64_t width, T *out) {
    VT(_square) columns[SQUARE];
    VT(_transpose)(p, line, columns);
#pragma GCC unroll 8
    for (int s = 0; s < SQUARE; s++)
        VT(_square_store)(out + s * width, columns[s]);
}

/* Lines whose elements are next to each other; `readable` lines are there, `count` of them belong to the panel. Both
 * are at least SQUARE, except that count may be below it together with width: then a store spills over into the next
 * step, which is written after it. */
static void OF(pack_turned)(const T *p, int64_t line, int64_t steps, int64_t count, int64_t width, T *out) {
    const int64_t last = count > SQUARE ? count - SQUARE : 0;
    for (int64_t k = 0; k < steps;) {
        const int64_t run = steps - k >= 2 * SQUARE ? 2 * SQUARE : SQUARE; /* whole cache lines, where possible */
        if (steps - k < SQUARE)
            k = steps - SQUARE;
        for (int64_t from = 0;; from = from + SQUARE < last ? from + SQUARE : last) {
            for (int64_t more = 0; more < run; more += SQUARE)
                OF(turn_square)(p + from * line + k + more, line, width, out + (k + more) * width + from);
            if (from == last)
                break;
        }
        k += run;
    }
    for (int64_t k = 0; count < width && k < steps; k++)
        for (int64_t j = count; j < width; j++)
            out[k * width + j] = 0;
}

static void OF(pack)(const void *context, int64_t batch, int64_t k_from, int64_t k_to, int64_t from, int64_t to,
                     int64_t width, void *out) {
    const sbp_operand *o = context;
    const int64_t steps = k_to - k_from;
    const T *p = (const T *)o->data + batch * o->batch + k_from * o->k + from * o->line;
    T *panel = out;
    for (; from < to; from += width, p += width * o->line, panel += width * steps) {
        const int64_t left = to - from, count = left < width ? left : width;
        if (o->line == 1)
            OF(pack_beside)(p, o->k, steps, count, width, panel);
        else if (o->k == 1 && left >= SQUARE && steps >= SQUARE && (count == width || count >= SQUARE))
            OF(pack_turned)(p, o->line, steps, count, width, panel);
        else
            OF(pack_any)(p, o->line, o->k, steps, count, width, panel);
    }
}

/* ---- After the product ---- */

static void OF(finish)(const sbp_product *p, int64_t batch, int64_t m_from, int64_t m_to, int64_t n_from, int64_t n_to) {
    const sbp_epilogue *e = &p->epilogue;
    const T alpha = (T)e->alpha, beta = (T)e->beta;
    const int64_t n = n_to - n_from, step = p->c_column, self_step = e->column;
    for (int64_t i = m_from; i < m_to; i++) {
        T *c = (T *)p->c + batch * p->c_batch + i * p->c_row + n_from * step;
        const T *self = e->self ? (const T *)e->self + batch * e->batch + i * e->row + n_from * self_step : c;
        if (alpha != 1)
            for (int64_t j = 0; j < n; j++)
                c[j * step] *= alpha;
        if (!e->self)
            continue;
        if (beta == 1 && step == 1 && self_step == 1)
            for (int64_t j = 0; j < n; j++)
                c[j] += self[j];
        else if (beta == 1)
            for (int64_t j = 0; j < n; j++)
                c[j * step] += self[j * self_step];
        else
            for (int64_t j = 0; j < n; j++)
                c[j * step] += self[j * self_step] * beta;
    }
}

#include "gemv_micro.h"

#undef STEPS_AHEAD

#define GEMM_KERNELS                                                                                                  \
    {sizeof(T), ROWS, VECTORS, LANES, OF(tiles), OF(pack), OF(finish), OF(gemv)}
