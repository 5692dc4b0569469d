/* One tile of outputs: some rows (of the packed factor) times two vectors. */

#ifndef CONV_PANEL_FROM
#define CONV_PANEL_FROM
/* Rows are cut into panels of nearly equal height. */
static inline int64_t SBP(conv_panel)(int64_t rows, int64_t panels, int64_t panel) { return rows * panel / panels; }
#endif

/* c += the chains of `terms` terms: those of the rows from a[term][row], those of the columns from left[place] ff. and
 * right[place] ff. */
static inline __attribute__((always_inline)) void CONV(tile)(const int rows, int64_t terms, const T *a, const T *left,
                                                            const T *right, const int64_t *places, T *c,
                                                            int64_t c_row) {
    VECTOR one[CONV_ROWS], two[CONV_ROWS];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        one[i] = two[i] = V(set)(0);
    for (int64_t k = 0; k < terms; k++, a += rows) {
        const VECTOR x = V(load)(left + places[k]), y = V(load)(right + places[k]);
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            const VECTOR w = V(set)(a[i]);
            one[i] = V(fma)(w, x, one[i]);
            two[i] = V(fma)(w, y, two[i]);
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        V(store)(c + i * c_row, V(add)(V(load)(c + i * c_row), one[i]));
        V(store)(c + i * c_row + LANES, V(add)(V(load)(c + i * c_row + LANES), two[i]));
    }
}

#define CONV_CASE(n)                                                                                                  \
    case n:                                                                                                           \
        if (n <= CONV_ROWS)                                                                                           \
            CONV(tile)(n <= CONV_ROWS ? n : 1, terms, a, left, right, places, c, c_row);                              \
        break;

static __attribute__((noinline)) void CONV(any_tile)(int64_t rows, int64_t terms, const T *a, const T *left,
                                                    const T *right, const int64_t *places, T *c, int64_t c_row) {
    switch (rows) {
        CONV_CASE(1)
        CONV_CASE(2)
        CONV_CASE(3)
        CONV_CASE(4)
        CONV_CASE(5)
        CONV_CASE(6)
        CONV_CASE(7)
        CONV_CASE(8)
        CONV_CASE(9)
        CONV_CASE(10)
        CONV_CASE(11)
        CONV_CASE(12)
        CONV_CASE(13)
        CONV_CASE(14)
    }
}
#undef CONV_CASE
