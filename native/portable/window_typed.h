/* The kernels of window_kernel.h for one type, T. A plane's outputs are computed row by row: of each row a run of windows
 * that are alike side by side, what is before and after the run one by one. */

SBP_INLINE void W(add)(const T *restrict from, T *restrict sums, int64_t n, int64_t step, int64_t width) {
    for (int64_t x = 0; x < n; x++)
        for (int64_t t = 0; t < width; t++)
            sums[x] += from[x * step + t];
}

SBP_INLINE void W(share)(const T *restrict shares, T *restrict to, int64_t n, int64_t step, int64_t width) {
    for (int64_t x = 0; x < n; x++)
        for (int64_t t = 0; t < width; t++)
            to[x * step + t] += shares[x];
}

/* A sum takes its terms in ascending order. */
static void W(add_run)(const sbp_window *w, const T *from, T *sums) {
    const int64_t n = w->run_end - w->run;
    if (w->step == 2 && w->width == 2)
        W(add)(from, sums, n, 2, 2);
    else
        for (int64_t t = 0; t < w->width; t++)
            if (w->step == 1)
                W(add)(from + t, sums, n, 1, 1);
            else
                W(add)(from + t, sums, n, w->step, 1);
}

/* What is in several windows is the end of the first of them, which comes first. */
static void W(share_run)(const sbp_window *w, const T *shares, T *to) {
    const int64_t n = w->run_end - w->run;
    if (w->step == 2 && w->width == 2)
        W(share)(shares, to, n, 2, 2);
    else
        for (int64_t t = w->width - 1; t >= 0; t--)
            if (w->step == 1)
                W(share)(shares, to + t, n, 1, 1);
            else
                W(share)(shares, to + t, n, w->step, 1);
}

static void W(add_each)(const sbp_window *w, const T *row, T *sums, int64_t from, int64_t to) {
    for (int64_t x = from; x < to; x++)
        for (int64_t k = w->first[2][x]; k < w->end[2][x]; k++)
            sums[x] += row[k];
}

static void W(share_each)(const sbp_window *w, const T *shares, T *row, int64_t from, int64_t to) {
    for (int64_t x = from; x < to; x++)
        for (int64_t k = w->first[2][x]; k < w->end[2][x]; k++)
            row[k] += shares[x];
}

/* `counts`: of the other two dimensions. */
static void W(divide)(const sbp_window *w, int64_t counts, const T *values, T *out) {
    const T all_in_run = (T)(w->divisor ? w->divisor : counts * w->count[2][w->run]);
    for (int64_t x = 0; x < w->run; x++)
        out[x] = values[x] / (T)(w->divisor ? w->divisor : counts * w->count[2][x]);
    for (int64_t x = w->run; x < w->run_end; x++)
        out[x] = values[x] / all_in_run;
    for (int64_t x = w->run_end; x < w->outputs[2]; x++)
        out[x] = values[x] / (T)(w->divisor ? w->divisor : counts * w->count[2][x]);
}

#define EACH_ROW_OF_WINDOWS(z, y)                                                                                     \
    for (int64_t z = 0; z < w->outputs[0]; z++)                                                                       \
        for (int64_t y = 0; y < w->outputs[1]; y++, narrow += w->outputs[2])

#define EACH_ROW_INSIDE(z, y, row)                                                                                    \
    for (int64_t i = w->first[0][z]; i < w->end[0][z]; i++)                                                           \
        for (int64_t j = w->first[1][y], row = (i * w->size[1] + j) * w->size[2]; j < w->end[1][y];                   \
             j++, row += w->size[2])

static void W(mean)(const sbp_window *w, void *wide_, void *narrow_, void *aside) {
    const T *wide = wide_;
    T *narrow = narrow_;
    (void)aside;
    memset(narrow, 0, (size_t)(w->outputs[0] * w->outputs[1] * w->outputs[2]) * sizeof(T));
    EACH_ROW_OF_WINDOWS(z, y) {
        EACH_ROW_INSIDE(z, y, row) {
            W(add_each)(w, wide + row, narrow, 0, w->run);
            W(add_run)(w, wide + row + w->first[2][w->run], narrow + w->run);
            W(add_each)(w, wide + row, narrow, w->run_end, w->outputs[2]);
        }
        W(divide)(w, w->count[0][z] * w->count[1][y], narrow, narrow);
    }
}

static void W(spread)(const sbp_window *w, void *wide_, void *narrow_, void *aside) {
    T *wide = wide_, *shares = aside;
    const T *narrow = narrow_;
    memset(wide, 0, (size_t)(w->size[0] * w->size[1] * w->size[2]) * sizeof(T));
    EACH_ROW_OF_WINDOWS(z, y) {
        W(divide)(w, w->count[0][z] * w->count[1][y], narrow, shares);
        EACH_ROW_INSIDE(z, y, row) {
            W(share_each)(w, shares, wide + row, 0, w->run);
            W(share_run)(w, shares + w->run, wide + row + w->first[2][w->run]);
            W(share_each)(w, shares, wide + row, w->run_end, w->outputs[2]);
        }
    }
}

#undef EACH_ROW_OF_WINDOWS
#undef EACH_ROW_INSIDE
