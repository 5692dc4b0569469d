/* The stages of a Fourier transform, for the float type T.
 *
 * A stage of radix r takes elements a[k] = x[q + s (p + m k)] to b[j] = y[q + s (r p + j)], for p in 0 .. m-1 and q in
 * 0 .. s-1. An element is a complex number (`one`: real parts first, imaginary parts `plane` further on), or as many of
 * them as there are lanes (`lanes`: their real parts, then their imaginary parts).
 */

#define ELEMENT (2 * LANES)

/* b times the conjugate of (c, s). */
SBP_INLINE void F(turn)(T br, T bi, T c, T s, T *restrict yr, T *restrict yi) {
    *yr = FMA(br, c, bi * s);
    *yi = FMA(bi, c, -(br * s));
}

/* Four elements to four. Parts of an element are `apart`, inputs `far`, outputs `next`; `turns` has the factors of b1 to
 * b3, `near` apart; none if `last`. */
SBP_INLINE void F(four)(const T *x, T *y, int64_t apart, int64_t far, int64_t next, const T *turns, int64_t near, int last) {
    const T t0r = x[0] + x[2 * far], t0i = x[apart] + x[2 * far + apart];
    const T t1r = x[0] - x[2 * far], t1i = x[apart] - x[2 * far + apart];
    const T t2r = x[far] + x[3 * far], t2i = x[far + apart] + x[3 * far + apart];
    const T t3r = x[far] - x[3 * far], t3i = x[far + apart] - x[3 * far + apart];
    const T b1r = t1r + t3i, b1i = t1i - t3r, b2r = t0r - t2r, b2i = t0i - t2i, b3r = t1r - t3i, b3i = t1i + t3r;
    y[0] = t0r + t2r;
    y[apart] = t0i + t2i;
    y[next] = last ? b1r : FMA(b1r, turns[0], b1i * turns[near]);
    y[next + apart] = last ? b1i : FMA(b1i, turns[0], -(b1r * turns[near]));
    y[2 * next] = last ? b2r : FMA(b2r, turns[2 * near], b2i * turns[3 * near]);
    y[2 * next + apart] = last ? b2i : FMA(b2i, turns[2 * near], -(b2r * turns[3 * near]));
    y[3 * next] = last ? b3r : FMA(b3r, turns[4 * near], b3i * turns[5 * near]);
    y[3 * next + apart] = last ? b3i : FMA(b3i, turns[4 * near], -(b3r * turns[5 * near]));
}

SBP_INLINE void F(two)(const T *x, T *y, int64_t apart, int64_t far, int64_t next, const T *turns, int64_t near, int last) {
    const T b1r = x[0] - x[far], b1i = x[apart] - x[far + apart];
    y[0] = x[0] + x[far];
    y[apart] = x[apart] + x[far + apart];
    y[next] = last ? b1r : FMA(b1r, turns[0], b1i * turns[near]);
    y[next + apart] = last ? b1i : FMA(b1i, turns[0], -(b1r * turns[near]));
}

/* The same for an odd radix, of a whole element of lanes, without the factors. `roots` has the cosine and the sine of
 * each j / r. */
SBP_INLINE void F(odd)(int r, const T *restrict x, T *restrict y, int64_t far, int64_t next, const T *restrict roots) {
    T sums[SBP_FFT_MOST_RADIX / 2][ELEMENT], differences[SBP_FFT_MOST_RADIX / 2][ELEMENT];
    for (int l = 0; l < ELEMENT; l++)
        y[l] = x[l];
    for (int k = 1; k <= r / 2; k++)
        for (int l = 0; l < ELEMENT; l++) {
            const T a = x[k * far + l], b = x[(r - k) * far + l];
            sums[k - 1][l] = a + b;
            differences[k - 1][l] = a - b;
            y[l] = y[l] + sums[k - 1][l];
        }
    for (int j = 1; j <= r / 2; j++) {
        T even[ELEMENT], crossed[ELEMENT];
        for (int l = 0; l < ELEMENT; l++) {
            even[l] = FMA(roots[2 * j], sums[0][l], x[l]);
            crossed[l] = roots[2 * j + 1] * differences[0][l];
        }
        for (int k = 2, at = 2 * j % r; k <= r / 2; k++, at = (at + j) % r)
            for (int l = 0; l < ELEMENT; l++) {
                even[l] = FMA(roots[2 * at], sums[k - 1][l], even[l]);
                crossed[l] = FMA(roots[2 * at + 1], differences[k - 1][l], crossed[l]);
            }
        T *first = y + j * next, *second = y + (r - j) * next;
        for (int l = 0; l < LANES; l++) {
            first[l] = even[l] + crossed[LANES + l];
            first[LANES + l] = even[LANES + l] - crossed[l];
            second[l] = even[l] - crossed[LANES + l];
            second[LANES + l] = even[LANES + l] + crossed[l];
        }
    }
}

#define STAGE_OF_LANES(radix, name, last)                                                                             \
    for (int64_t p = 0; p < m; p++, turns += 2 * (radix - 1))                                                         \
        for (int64_t q = 0; q < s; q++) {                                                                             \
            const T *a = x + ELEMENT * (q + s * p);                                                                   \
            T *b = y + ELEMENT * (q + s * radix * p);                                                                 \
            FFT_APART for (int l = 0; l < LANES; l++)                                                                 \
                F(name)(a + l, b + l, LANES, ELEMENT *s *m, ELEMENT *s, turns, 1, last);                              \
        }

static void F(lanes_of_four)(int64_t m, int64_t s, const T *restrict x, T *restrict y, const T *restrict turns) {
    if (m == 1)
        STAGE_OF_LANES(4, four, 1)
    else
        STAGE_OF_LANES(4, four, 0)
}

static void F(lanes_of_two)(int64_t m, int64_t s, const T *restrict x, T *restrict y, const T *restrict turns) {
    if (m == 1)
        STAGE_OF_LANES(2, two, 1)
    else
        STAGE_OF_LANES(2, two, 0)
}

SBP_INLINE void F(lanes_of_odd)(int r, int64_t m, int64_t s, const T *restrict x, T *restrict y, const T *restrict roots) {
    const T *turns = roots + 2 * r;
    for (int64_t p = 0; p < m; p++, turns += 2 * (r - 1))
        for (int64_t q = 0; q < s; q++) {
            T *b = y + ELEMENT * (q + s * r * p);
            F(odd)(r, x + ELEMENT * (q + s * p), b, ELEMENT * s * m, ELEMENT * s, roots);
            for (int j = 1; m > 1 && j < r; j++) {
                T *each = b + ELEMENT * s * j;
                const T cosine = turns[2 * j - 2], sine = turns[2 * j - 1];
                for (int l = 0; l < LANES; l++)
                    F(turn)(each[l], each[LANES + l], cosine, sine, each + l, each + LANES + l);
            }
        }
}

static void F(stage_of_lanes)(int r, int64_t m, int64_t s, const T *x, T *y, const T *table) {
    if (r == 4)
        F(lanes_of_four)(m, s, x, y, table);
    else if (r == 2)
        F(lanes_of_two)(m, s, x, y, table);
    else if (r == 3)
        F(lanes_of_odd)(3, m, s, x, y, table);
    else if (r == 5)
        F(lanes_of_odd)(5, m, s, x, y, table);
    else
        F(lanes_of_odd)(r, m, s, x, y, table);
}

/* A stage of one transform, whose q are next to each other. */
#define STAGE_OF_ONE(radix, name, count, last)                                                                        \
    for (int64_t p = 0; p < m; p++, turns += 2 * (radix - 1)) {                                                       \
        const T *a = x + (count)*p;                                                                                   \
        T *b = y + (count)*radix * p;                                                                                 \
        FFT_APART for (int64_t q = 0; q < (count); q++)                                                               \
            F(name)(a + q, b + q, plane, (count)*m, count, turns, 1, last);                                           \
    }

static void F(one_of_four)(int64_t m, int64_t s, int64_t plane, const T *restrict x, T *restrict y, const T *restrict turns) {
    if (m == 1)
        STAGE_OF_ONE(4, four, s, 1)
    else if (s == 4)
        STAGE_OF_ONE(4, four, 4, 0)
    else
        STAGE_OF_ONE(4, four, s, 0)
}

static void F(one_of_two)(int64_t m, int64_t s, int64_t plane, const T *restrict x, T *restrict y, const T *restrict turns) {
    if (m == 1)
        STAGE_OF_ONE(2, two, s, 1)
    else
        STAGE_OF_ONE(2, two, s, 0)
}

/* The first stage, s = 1: here it is the p that are next to each other, and their factors are by j, then by p. */
static void F(first_of_four)(int64_t m, int64_t plane, const T *restrict x, T *restrict y, const T *restrict turns) {
    FFT_APART for (int64_t p = 0; p < m; p++)
        F(four)(x + p, y + 4 * p, plane, m, 1, turns + p, m, 0);
}

/* As many as there are lanes are brought together. */
static void F(one_of_odd)(int r, int64_t m, int64_t s, int64_t plane, const T *restrict x, T *restrict y,
                          const T *restrict roots) {
    T in[SBP_FFT_MOST_RADIX * ELEMENT], out[SBP_FFT_MOST_RADIX * ELEMENT];
    const T *turns = roots + 2 * r;
    for (int64_t from = 0; from < m * s; from += LANES) {
        const int64_t count = m * s - from < LANES ? m * s - from : LANES;
        for (int k = 0; k < r; k++)
            for (int l = 0; l < LANES; l++) {
                const int64_t at = from + (l < count ? l : 0) + s * m * k;
                in[k * ELEMENT + l] = x[at];
                in[k * ELEMENT + LANES + l] = x[at + plane];
            }
        F(odd)(r, in, out, ELEMENT, ELEMENT, roots);
        for (int64_t l = 0; l < count; l++) {
            const int64_t p = (from + l) / s, q = (from + l) % s;
            for (int j = 0; j < r; j++) {
                const T br = out[j * ELEMENT + l], bi = out[j * ELEMENT + LANES + l];
                T *to = y + q + s * (r * p + j);
                const T *each = turns + 2 * (p * (r - 1) + j - 1);
                if (j && m > 1)
                    F(turn)(br, bi, each[0], each[1], to, to + plane);
                else {
                    to[0] = br;
                    to[plane] = bi;
                }
            }
        }
    }
}

/* All stages, of one transform if there is a `plane`, else of lanes; from `a`, by way of `b`. Returns where it ends. */
static T *F(stages)(const sbp_fft *f, T *a, T *b, int64_t plane) {
    const sbp_fft_parameters *p = f->parameters;
    const int64_t *radices = p->radices;
    const T *table = p->table;
    for (int64_t i = 0, m = f->length, s = 1; i < p->stages; i++) {
        const int r = (int)radices[i];
        m /= r;
        if (!plane)
            F(stage_of_lanes)(r, m, s, a, b, table);
        else if (r == 4 && s == 1 && m > 1)
            F(first_of_four)(m, plane, a, b, p->first);
        else if (r == 4)
            F(one_of_four)(m, s, plane, a, b, table);
        else if (r == 2)
            F(one_of_two)(m, s, plane, a, b, table);
        else
            F(one_of_odd)(r, m, s, plane, a, b, table);
        table += (r % 2 ? 2 * r : 0) + (m > 1 ? 2 * (r - 1) * m : 0);
        s *= r;
        T *other = a;
        a = b;
        b = other;
    }
    return a;
}

#undef STAGE_OF_LANES
#undef STAGE_OF_ONE
