#include "jacobi.h"
#include "reduce_kernel.h"

#define JACOBI_SMALLEST 0x1p-900
#define JACOBI_WIDTH ((int)(SBP_VECTOR / sizeof(double)))
#define JACOBI_PIECES (SBP_LANES / JACOBI_WIDTH)

typedef struct {
    double a, b, g;
} SBP(jacobi_products);

/* The three reductions of one chunk of a pair, in one reading. */
SBR_INLINE SBP(jacobi_products) SBP(jacobi_chunk)(const double *x, const double *y, const int64_t partner, int64_t n) {
    SBP(vec_f64) a[JACOBI_PIECES], b[JACOBI_PIECES], g[JACOBI_PIECES];
    for (int p = 0; p < JACOBI_PIECES; p++)
        a[p] = b[p] = g[p] = SBP(vec_set_f64)(0);
    for (int64_t i = 0; i < n; i += SBP_LANES)
#pragma GCC unroll 8
        for (int p = 0; p < JACOBI_PIECES; p++) {
            const int64_t at = i + p * JACOBI_WIDTH;
            const SBP(vec_f64) xw = SBP(vec_load_f64)(x + at), yw = SBP(vec_load_f64)(y + at);
            const SBP(vec_f64) yj = SBP(vec_load_f64)(y + partner + at);
            a[p] = SBP(vec_fma_f64)(xw, SBP(vec_load_f64)(x + partner + at), a[p]);
            b[p] = SBP(vec_fma_f64)(yw, yj, b[p]);
            g[p] = SBP(vec_fma_f64)(xw, yj, g[p]);
        }
    return (SBP(jacobi_products)){SBP(fold_f64)(SBP_SUM, a), SBP(fold_f64)(SBP_SUM, b), SBP(fold_f64)(SBP_SUM, g)};
}

SBR_INLINE SBP(jacobi_products)
SBP(jacobi_all_chunks)(const double *x, const double *y, const int64_t partner, int64_t width) {
    if (width <= SBP_CHUNK)
        return SBP(jacobi_chunk)(x, y, partner, width);
    SBP(tree_f64) a, b, g;
    a.depth = a.made = b.depth = b.made = g.depth = g.made = 0;
    for (int64_t i = 0; i < width; i += SBP_CHUNK) {
        const int64_t n = width - i < SBP_CHUNK ? width - i : SBP_CHUNK;
        const SBP(jacobi_products) found = SBP(jacobi_chunk)(x + i, y + i, partner, n);
        SBP(tree_add_f64)(SBP_SUM, &a, found.a);
        SBP(tree_add_f64)(SBP_SUM, &b, found.b);
        SBP(tree_add_f64)(SBP_SUM, &g, found.g);
    }
    return (SBP(jacobi_products)){SBP(tree_end_f64)(SBP_SUM, &a, 0), SBP(tree_end_f64)(SBP_SUM, &b, 0),
                                  SBP(tree_end_f64)(SBP_SUM, &g, 0)};
}

/* (x, y) = (c x - s y, s x + c y) */
static void SBP(jacobi_turn)(double *x, double *y, double cosine, double sine, int64_t length) {
    const SBP(vec_f64) c = SBP(vec_set_f64)(cosine), s = SBP(vec_set_f64)(sine);
    for (int64_t i = 0; i < length; i += SBP_LANES)
#pragma GCC unroll 8
        for (int p = 0; p < JACOBI_PIECES; p++) {
            double *to_x = x + i + p * JACOBI_WIDTH, *to_y = y + i + p * JACOBI_WIDTH;
            const SBP(vec_f64) a = SBP(vec_load_f64)(to_x), b = SBP(vec_load_f64)(to_y);
            SBP(vec_store_f64)(to_x, c * a - s * b);
            SBP(vec_store_f64)(to_y, s * a + c * b);
        }
}

static int SBP(jacobi_is_wanted)(const sbp_jacobi *j, const SBP(jacobi_products) *p) {
    if (j->partner)
        return fabs(p->g) > j->limit;
    return fabs(p->g) > sqrt(p->a) * sqrt(p->b) * j->tolerance && p->a > JACOBI_SMALLEST && p->b > JACOBI_SMALLEST;
}

static int SBP(jacobi_pairs)(const sbp_jacobi *j, int64_t first, int64_t count) {
    double **rows = j->rows + first, cosine[SBP_JACOBI_PAIRS], sine[SBP_JACOBI_PAIRS];
    SBP(jacobi_products) found[SBP_JACOBI_PAIRS];
    int wanted[SBP_JACOBI_PAIRS], any = 0;
    for (int64_t i = 0; i < count; i++) {
        const double *x = rows[2 * i], *y = rows[2 * i + 1];
        found[i] = j->partner ? SBP(jacobi_all_chunks)(x, y, j->partner, j->width)
                              : SBP(jacobi_all_chunks)(x, y, 0, j->width);
        any |= wanted[i] = SBP(jacobi_is_wanted)(j, &found[i]);
    }
    for (int64_t i = 0; any && i < count; i++) {
        const double ratio = (found[i].b - found[i].a) / (wanted[i] ? found[i].g * 2 : 1);
        const double size = 1 / (fabs(ratio) + sqrt(ratio * ratio + 1)), tangent = ratio < 0 ? -size : size;
        cosine[i] = 1 / sqrt(tangent * tangent + 1);
        sine[i] = cosine[i] * tangent;
    }
    for (int64_t i = 0; i < count; i++) {
        double *x = rows[2 * i], *y = rows[2 * i + 1];
        if (wanted[i]) /* else c is 1 and s is 0, and nothing is left to do but to change places */
            SBP(jacobi_turn)(x, y, cosine[i], sine[i], j->length);
        rows[2 * i] = y;
        rows[2 * i + 1] = x;
    }
    return any;
}

#undef JACOBI_SMALLEST
#undef JACOBI_WIDTH
#undef JACOBI_PIECES

const sbp_jacobi_table SBP(jacobi) = {SBP(jacobi_pairs)};
