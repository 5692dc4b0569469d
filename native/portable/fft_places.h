/* Fourier transforms of the float type T from where their numbers are to where they go. The buffers between have
 * `length` + 1 elements, of lanes or of one (fft_stages.h). */

/* The elements of a buffer, which is of one transform if there is a `plane`. */
#define STEP (plane ? 1 : ELEMENT)
#define APART (plane ? plane : LANES)
#define WIDE (plane ? 1 : LANES)

#if defined(SBP_IS_AVX2) || defined(SBP_IS_AVX512) || defined(SBP_IS_NEON)
#define SQUARE V(SQUARE)

/* Elements next to each other, SQUARE / 2 of them of SQUARE lanes at a time, to and from a buffer. */
static int64_t F(load_squares)(const T *const *from, int64_t count, T *a) {
    const int64_t whole = count - count % (SQUARE / 2), line = from[1] - from[0];
    for (int64_t e = 0; e < whole; e += SQUARE / 2)
        for (int l = 0; l < LANES; l += SQUARE) {
            V(square) columns[SQUARE];
            V(transpose)(from[l] + 2 * e, line, columns);
            for (int c = 0; c < SQUARE; c++)
                V(square_store)(a + e * ELEMENT + c * LANES + l, columns[c]);
        }
    return whole;
}

static int64_t F(store_squares)(const T *a, int64_t count, T *const *to) {
    const int64_t whole = count - count % (SQUARE / 2);
    for (int64_t e = 0; e < whole; e += SQUARE / 2)
        for (int l = 0; l < LANES; l += SQUARE) {
            V(square) rows[SQUARE];
            V(transpose)(a + e * ELEMENT + l, LANES, rows);
            for (int row = 0; row < SQUARE; row++)
                V(square_store)(to[l + row] + 2 * e, rows[row]);
        }
    return whole;
}
#undef SQUARE
#else
static int64_t F(load_squares)(const T *const *from, int64_t count, T *a) {
    (void)from, (void)count, (void)a;
    return 0;
}

static int64_t F(store_squares)(const T *a, int64_t count, T *const *to) {
    (void)a, (void)count, (void)to;
    return 0;
}
#endif

/* One element of all lanes, which are `line` apart. */
SBP_INLINE void F(load_row)(const T *restrict row, int64_t line, int64_t imaginary, T *restrict a) {
    for (int l = 0; l < LANES; l++) {
        a[l] = row[l * line];
        a[LANES + l] = row[l * line + imaginary];
    }
}

SBP_INLINE void F(store_row)(const T *restrict a, T *restrict row, int64_t line, int64_t imaginary) {
    for (int l = 0; l < LANES; l++) {
        row[l * line] = a[l];
        row[l * line + imaginary] = a[LANES + l];
    }
}

/* Whether the rows of all lanes are as far apart as those of the first two. */
static int F(in_line)(const T *const *rows, int count) {
    for (int l = 2; l < count; l++)
        if (rows[l] - rows[l - 1] != rows[1] - rows[0])
            return 0;
    return count == LANES;
}

/* Reads `count` elements. */
static void F(load)(const sbp_fft_place *place, const T *const *from, int lanes, int64_t count, T *a, int64_t plane) {
    const int64_t step = place->step, imaginary = place->imaginary;
    const int in_line = !plane && F(in_line)(from, lanes);
    int64_t e = in_line && step == 2 && imaginary == 1 ? F(load_squares)(from, count, a) : 0;
    if (in_line && imaginary == 1 && from[1] - from[0] == 2)
        for (; e < count; e++)
            F(load_row)(from[0] + e * step, 2, 1, a + e * ELEMENT);
    else if (in_line && imaginary && from[1] - from[0] == 1)
        for (; e < count; e++)
            F(load_row)(from[0] + e * step, 1, imaginary, a + e * ELEMENT);
    if (plane && imaginary == 1 && step == 2) /* so that it is clear what can be done side by side */
        for (; e < count; e++) {
            a[e] = from[0][2 * e];
            a[e + plane] = from[0][2 * e + 1];
        }
    for (; e < count; e++)
        for (int l = 0; l < WIDE; l++) {
            const T *value = from[l < lanes ? l : 0] + e * step;
            a[e * STEP + l] = value[0];
            a[e * STEP + APART + l] = imaginary ? value[imaginary] : 0;
        }
}

/* Writes them. */
static void F(store)(const sbp_fft_place *place, T *const *to, int lanes, int64_t count, const T *a, int64_t plane) {
    const int64_t step = place->step, imaginary = place->imaginary;
    const int in_line = !plane && F(in_line)((const T *const *)to, lanes);
    int64_t e = in_line && step == 2 && imaginary == 1 ? F(store_squares)(a, count, to) : 0;
    if (in_line && imaginary == 1 && to[1] - to[0] == 2)
        for (; e < count; e++)
            F(store_row)(a + e * ELEMENT, to[0] + e * step, 2, 1);
    else if (in_line && imaginary && to[1] - to[0] == 1)
        for (; e < count; e++)
            F(store_row)(a + e * ELEMENT, to[0] + e * step, 1, imaginary);
    if (plane && imaginary == 1 && step == 2)
        for (T *restrict row = to[0]; e < count; e++) {
            row[2 * e] = a[e];
            row[2 * e + 1] = a[e + plane];
        }
    for (; e < count; e++)
        for (int l = 0; l < lanes; l++) {
            T *value = to[l] + e * step;
            value[0] = a[e * STEP + l];
            if (imaginary)
                value[imaginary] = a[e * STEP + APART + l];
        }
}

/* Changes the places of the two parts, and multiplies; either if it is asked for. */
static void F(finish)(T *a, int64_t count, int64_t plane, int exchange, T scale) {
    for (int64_t i = 0; exchange && i < (plane ? 1 : count); i++) {
        T *re = a + i * ELEMENT, *im = re + APART;
        for (int64_t l = 0; l < (plane ? count : LANES); l++) {
            const T value = re[l];
            re[l] = im[l];
            im[l] = value;
        }
    }
    for (int64_t i = 0; scale != 1 && i < (plane ? 2 : count); i++) {
        T *each = a + i * (plane ? plane : ELEMENT);
        for (int64_t l = 0; l < (plane ? count : ELEMENT); l++)
            each[l] *= scale;
    }
}

/* From the transform of pairs of real numbers to the first half of that of all of them; `turns` are those of n. */
SBP_INLINE void F(part)(const T *restrict a, T *restrict b, int64_t half, const T *restrict turns, int64_t plane) {
    for (int64_t k = 0; k <= half; k++) {
        const T *one = a + (k < half ? k : 0) * STEP, *other = a + (k ? half - k : 0) * STEP;
        const T c = turns[2 * k], s = turns[2 * k + 1];
        T *to = b + k * STEP;
        for (int l = 0; l < WIDE; l++) {
            const T er = (T)0.5 * (one[l] + other[l]), ei = (T)0.5 * (one[APART + l] - other[APART + l]);
            const T gr = (T)0.5 * (one[APART + l] + other[APART + l]), gi = (T)0.5 * (other[l] - one[l]);
            to[l] = er + FMA(gr, c, gi * s);
            to[APART + l] = ei + FMA(gi, c, -(gr * s));
        }
    }
}

/* The other way, and the two parts change places. */
SBP_INLINE void F(join)(const T *restrict a, T *restrict b, int64_t half, const T *restrict turns, int64_t plane) {
    for (int64_t k = 0; k < half; k++) {
        const T *one = a + k * STEP, *other = a + (half - k) * STEP;
        const T c = turns[2 * k], s = turns[2 * k + 1];
        T *to = b + k * STEP;
        for (int l = 0; l < WIDE; l++) {
            const T er = one[l] + other[l], ei = one[APART + l] - other[APART + l];
            const T dr = one[l] - other[l], di = one[APART + l] + other[APART + l];
            to[APART + l] = er - FMA(di, c, dr * s);
            to[l] = ei + FMA(dr, c, -(di * s));
        }
    }
}

/* The second half of a spectrum of real numbers, of an odd number of elements. */
SBP_INLINE void F(mirror)(T *a, int64_t n, int64_t plane) {
    for (int64_t k = n / 2 + 1; k < n; k++)
        for (int l = 0; l < WIDE; l++) {
            a[k * STEP + l] = a[(n - k) * STEP + l];
            a[k * STEP + APART + l] = -a[(n - k) * STEP + APART + l];
        }
}

/* The first and the last element of half a spectrum of real numbers are real. */
SBP_INLINE void F(make_real)(T *a, int64_t plane) {
    for (int l = 0; l < WIDE; l++)
        a[APART + l] = 0;
}

SBP_INLINE void F(run)(const sbp_fft *f, int lanes, const T *const *from, T *const *to, T *a, T *b, int64_t plane) {
    const sbp_fft_parameters *p = f->parameters;
    const int64_t kept = p->n / 2 + 1;
    const int to_real = p->kind == SBP_FFT_TO_REAL, from_real = p->kind == SBP_FFT_FROM_REAL;
    int64_t count = from_real || !to_real ? f->length : kept;
    F(load)(&f->in, from, lanes, count, a, plane);
    if (to_real) {
        F(make_real)(a, plane);
        if (f->half) {
            F(make_real)(a + f->length * STEP, plane);
            F(join)(a, b, f->length, p->turns, plane);
            T *other = a;
            a = b;
            b = other;
        } else
            F(mirror)(a, p->n, plane);
    }
    if (to_real ? !f->half : p->is_inverse)
        F(finish)(a, f->length, plane, 1, 1);
    T *end = F(stages)(f, a, b, plane);
    if (from_real && f->half) {
        T *other = end == a ? b : a;
        F(part)(end, other, f->length, p->turns, plane);
        end = other;
    }
    count = from_real ? kept : f->length;
    F(finish)(end, count, plane, to_real || p->is_inverse, (T)p->scale);
    F(store)(&f->out, to, lanes, count, end, plane);
}

static void F(lanes)(const sbp_fft *f, int count, const void *const *from, void *const *to, void *a, void *b) {
    F(run)(f, count, (const T *const *)from, (T *const *)to, a, b, 0);
}

static void F(one)(const sbp_fft *f, const void *from, void *to, void *a, void *b) {
    const T *in = from;
    T *out = to;
    F(run)(f, 1, &in, &out, a, b, f->length + 1);
}

#undef STEP
#undef APART
#undef WIDE
#undef ELEMENT
