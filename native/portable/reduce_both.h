/* For one type, as reduce_typed.h: two sums in one reading, that of a gradient (times a weight, if `weighted`), and that
 * of gradient (x - m). x and the gradient are laid out alike. */

typedef struct {
    SBR_T sum, cross;
} SBR(both);

typedef struct {
    const SBR_T *x, *gradient, *weight;
    const int64_t *lines; /* where each of them is; NULL: in one piece */
    SBR_T m;
} SBR(pair);

SBR_INLINE SBR(both) SBR(chunk_of_both)(const int weighted, const int in_lines, const SBR(pair) *c, const int64_t n) {
    SBR(vec) sum[SBR_PIECES], cross[SBR_PIECES];
    const SBR(vec) m = SBR(vec_set)(c->m);
    int64_t i = 0;
#pragma GCC unroll 8
    for (int p = 0; p < SBR_PIECES; p++)
        sum[p] = cross[p] = SBR(vec_set)(0);
    for (; i + SBP_LANES <= n; i += SBP_LANES) {
        const int64_t at = in_lines ? c->lines[i / SBP_LANES] : i;
#pragma GCC unroll 8
        for (int p = 0; p < SBR_PIECES; p++) {
            SBR(vec) gradient = SBR(vec_load)(c->gradient + at + p * SBR_WIDTH);
            if (weighted)
                gradient = gradient * SBR(vec_load)(c->weight + at + p * SBR_WIDTH);
            sum[p] = sum[p] + gradient;
            cross[p] = SBR(vec_fma)(gradient, SBR(vec_load)(c->x + at + p * SBR_WIDTH) - m, cross[p]);
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < SBR_PIECES; p++, i += SBR_WIDTH)
        if (i < n) {
            SBR(vec) gradient = SBR(vec_part)(c->gradient + i, n - i);
            if (weighted)
                gradient = gradient * SBR(vec_part)(c->weight + i, n - i);
            const SBR(vec) x = SBR(vec_part)(c->x + i, n - i);
            sum[p] = SBR(vec_until)(n - i, sum[p] + gradient, sum[p]);
            cross[p] = SBR(vec_until)(n - i, SBR(vec_fma)(gradient, x - m, cross[p]), cross[p]);
        }
    return (SBR(both)){SBR(fold)(SBP_SUM, sum), SBR(fold)(SBP_SUM, cross)};
}

/* The sums of n values in one piece. */
SBR_INLINE SBR(both) SBR(total_of_both)(const int weighted, SBR(pair) c, int64_t n) {
    SBR_T sums[SBR_NODE], crosses[SBR_NODE];
    SBR(tree) tree, cross_tree;
    tree.depth = tree.made = cross_tree.depth = cross_tree.made = 0;
    for (int64_t left = n; left > 0; left -= SBR_NODE * SBP_CHUNK) {
        int64_t chunks = 0;
        for (int64_t rest = left; rest > 0 && chunks < SBR_NODE; rest -= SBP_CHUNK, chunks++) {
            const SBR(both) found = rest >= SBP_CHUNK ? SBR(chunk_of_both)(weighted, 0, &c, SBP_CHUNK)
                                                      : SBR(chunk_of_both)(weighted, 0, &c, rest);
            sums[chunks] = found.sum;
            crosses[chunks] = found.cross;
            c.x += SBP_CHUNK, c.gradient += SBP_CHUNK, c.weight += weighted ? SBP_CHUNK : 0;
        }
        SBR(tree_of)(SBP_SUM, sums, chunks, 1);
        SBR(tree_of)(SBP_SUM, crosses, chunks, 1);
        SBR(tree_add)(SBP_SUM, &tree, sums[0]);
        SBR(tree_add)(SBP_SUM, &cross_tree, crosses[0]);
    }
    return (SBR(both)){SBR(tree_end)(SBP_SUM, &tree, 0), SBR(tree_end)(SBP_SUM, &cross_tree, 0)};
}

static __attribute__((noinline, unused)) SBR(both)
SBR(total_both)(const SBR_T *x, const SBR_T *gradient, const SBR_T *weight, SBR_T m, int64_t n) {
    const SBR(pair) c = {x, gradient, weight, NULL, m};
    return weight ? SBR(total_of_both)(1, c, n) : SBR(total_of_both)(0, c, n);
}

/* Rows of some columns that one lane takes in, 16 rows apart: gradient, and gradient (x - m) r. Each of m and r has one
 * value for a column or, if `by_row`, for a row; without `by_row` there is no r. */
typedef struct {
    const SBR_T *x, *gradient, *m, *r;
    int64_t step, count; /* from row to row; columns */
} SBR(columns);

SBR_INLINE void SBR(take_both)(const int by_row, const int rows, const SBR(columns) *c, int64_t i, SBR_T *sums,
                               SBR_T *crosses) {
    for (int64_t j = 0; j < c->count; j += SBR_WIDTH) {
        const int64_t left = c->count - j;
        SBR(vec) sum = SBR(vec_load)(sums + j), cross = SBR(vec_load)(crosses + j);
        SBR(vec) m = by_row ? sum : SBR(vec_part)(c->m + j, left), r = m;
#pragma GCC unroll 4
        for (int k = 0; k < rows; k++) {
            const int64_t row = i + k * SBP_LANES, at = row * c->step + j;
            if (by_row) {
                m = SBR(vec_set)(c->m[row]);
                r = SBR(vec_set)(c->r[row]);
            }
            const SBR(vec) gradient = SBR(vec_part)(c->gradient + at, left);
            const SBR(vec) x = SBR(vec_part)(c->x + at, left) - m;
            sum = sum + gradient;
            cross = SBR(vec_fma)(gradient, by_row ? x * r : x, cross);
        }
        SBR(vec_store)(sums + j, sum);
        SBR(vec_store)(crosses + j, cross);
    }
}

/* One chunk of `rows` rows, at most SBP_BOTH columns. */
SBR_INLINE void SBR(columns_of_both)(const int by_row, const SBR(columns) *c, int64_t rows, SBR_T *sums,
                                     SBR_T *crosses) {
    enum { AT_ONCE = 4, GROUP = AT_ONCE * SBP_LANES };
    SBR_T sum[SBP_LANES][SBP_BOTH], cross[SBP_LANES][SBP_BOTH];
    const int64_t width = (c->count + SBR_WIDTH - 1) / SBR_WIDTH * SBR_WIDTH;
    int64_t i = 0;
    for (int l = 0; l < SBP_LANES; l++)
        for (int64_t j = 0; j < width; j += SBR_WIDTH) {
            SBR(vec_store)(sum[l] + j, SBR(vec_set)(0));
            SBR(vec_store)(cross[l] + j, SBR(vec_set)(0));
        }
    for (; i + GROUP <= rows; i += GROUP)
        for (int l = 0; l < SBP_LANES; l++)
            SBR(take_both)(by_row, AT_ONCE, c, i + l, sum[l], cross[l]);
    for (; i < rows; i++)
        SBR(take_both)(by_row, 1, c, i, sum[i % SBP_LANES], cross[i % SBP_LANES]);
    for (int h = SBP_LANES / 2; h; h /= 2)
        for (int l = 0; l < h; l++)
            for (int64_t j = 0; j < width; j += SBR_WIDTH) {
                SBR(vec_store)(sum[l] + j, SBR(vec_load)(sum[l] + j) + SBR(vec_load)(sum[l + h] + j));
                SBR(vec_store)(cross[l] + j, SBR(vec_load)(cross[l] + j) + SBR(vec_load)(cross[l + h] + j));
            }
    memcpy(sums, sum[0], (size_t)c->count * sizeof(SBR_T));
    memcpy(crosses, cross[0], (size_t)c->count * sizeof(SBR_T));
}

/* The use of such sums in gradients of norms: fma(m - x, slope, gradient weight - shift) scale for n values. */
typedef struct {
    SBR_T m, slope, weight, shift, scale;
} SBR(terms);

SBR_INLINE SBR(vec) SBR(of_input)(SBR(vec) x, SBR(vec) gradient, const SBR(terms) *t) {
    const SBR(vec) rest = gradient * SBR(vec_set)(t->weight) - SBR(vec_set)(t->shift);
    return SBR(vec_fma)(SBR(vec_set)(t->m) - x, SBR(vec_set)(t->slope), rest) * SBR(vec_set)(t->scale);
}

SBR_INLINE void SBR(gradient_run)(const SBR_T *x, const SBR_T *gradient, SBR_T *out, int64_t n, SBR(terms) t) {
    int64_t i = 0;
    for (; i + SBR_WIDTH <= n; i += SBR_WIDTH)
        SBR(vec_store)(out + i, SBR(of_input)(SBR(vec_load)(x + i), SBR(vec_load)(gradient + i), &t));
    if (i < n)
        SBR(vec_put)(out + i, SBR(of_input)(SBR(vec_part)(x + i, n - i), SBR(vec_part)(gradient + i, n - i), &t), n - i);
}
