/* A matrix by a vector, for one element type (see gemm_micro.h): every output is its own chains, in blocks of
 * SBP_K_BLOCK; vectors hold chains of different outputs, or different chains of one. */

SBP_INLINE T OF(fma)(T a, T b, T c) { return (T)(sizeof(T) == 4 ? fmaf((float)a, (float)b, (float)c) : fma(a, b, c)); }

/* ---- Outputs next to each other in memory ---- */

enum { OF(chunk) = 1024 };

SBP_INLINE void OF(axpys)(int steps, int64_t count, const T *p, int64_t step, const T *x, T *chain) {
    int64_t j = 0;
    for (; j + LANES <= count; j += LANES) {
        V v = VT(_load)(chain + j);
#pragma GCC unroll 8
        for (int s = 0; s < steps; s++)
            v = VT(_fma)(VT(_load)(p + s * step + j), VT(_set)(x[s]), v);
        VT(_store)(chain + j, v);
    }
    for (; j < count; j++)
        for (int s = 0; s < steps; s++)
            chain[j] = OF(fma)(p[s * step + j], x[s], chain[j]);
}

static void OF(gemv_beside)(int64_t count, int64_t k, const T *m, int64_t step, const T *x, T *out, int64_t out_step) {
    T total[OF(chunk)], chain[OF(chunk)];
    for (int64_t from = 0; from < count; from += OF(chunk)) {
        const int64_t now = count - from < OF(chunk) ? count - from : OF(chunk);
        for (int64_t j = 0; j < now; j++)
            total[j] = 0;
        for (int64_t block = 0; block < k; block += SBP_K_BLOCK) {
            const int64_t end = block + SBP_K_BLOCK < k ? block + SBP_K_BLOCK : k;
            int64_t t = block;
            for (int64_t j = 0; j < now; j++)
                chain[j] = 0;
            for (; t + 8 <= end; t += 8)
                OF(axpys)(8, now, m + from + t * step, step, x + t, chain);
            for (; t < end; t++)
                OF(axpys)(1, now, m + from + t * step, step, x + t, chain);
            for (int64_t j = 0; j < now; j++)
                total[j] += chain[j];
        }
        for (int64_t j = 0; j < now; j++)
            out[(from + j) * out_step] = total[j];
    }
}

/* ---- The elements of an output next to each other: squares are turned in registers ---- */

/* SQUARE chains side by side. `apart` is between their elements; the vector is one for all, or one for each when
 * x_apart is not 0. */
typedef struct {
    const T *p, *x;
    T *total;
} OF(unit);

SBP_INLINE void OF(run_units)(int units, const OF(unit) * u, int64_t apart, int64_t x_apart, int64_t steps,
                              T (*out)[SQUARE]) {
    VT(_square) chain[4];
    int64_t t = 0;
#pragma GCC unroll 4
    for (int i = 0; i < units; i++)
        chain[i] = VT(_square_zero)();
    for (; t + SQUARE <= steps; t += SQUARE)
#pragma GCC unroll 4
        for (int i = 0; i < units; i++) {
            VT(_square) left[SQUARE], right[SQUARE];
            VT(_transpose)(u[i].p + t, apart, left);
            if (x_apart)
                VT(_transpose)(u[i].x + t, x_apart, right);
#pragma GCC unroll 8
            for (int s = 0; s < SQUARE; s++)
                chain[i] = VT(_square_fma)(left[s], x_apart ? right[s] : VT(_square_set)(u[i].x[t + s]), chain[i]);
        }
#pragma GCC unroll 4
    for (int i = 0; i < units; i++)
        VT(_square_store)(out[i], chain[i]);
    for (; t < steps; t++)
        for (int i = 0; i < units; i++)
            for (int l = 0; l < SQUARE; l++)
                out[i][l] = OF(fma)(u[i].p[l * apart + t], u[i].x[l * x_apart + t], out[i][l]);
}

static void OF(add_units)(int units, const OF(unit) * u, int64_t apart, int64_t steps) {
    T chains[4][SQUARE];
    if (units == 4)
        OF(run_units)(4, u, apart, 0, steps, chains);
    else
        for (int i = 0; i < units; i++)
            OF(run_units)(1, u + i, apart, 0, steps, chains + i);
    for (int i = 0; i < units; i++) /* blocks of one output come in ascending order */
        for (int l = 0; l < SQUARE; l++)
            u[i].total[l] += chains[i][l];
}

/* Groups of SQUARE outputs, the last of them overlapping the one before if need be. */
static void OF(gemv_groups)(int64_t count, int64_t k, const T *m, int64_t line, const T *x, T *out, int64_t out_step) {
    enum { GROUPS = 32 };
    const int64_t groups = (count + SQUARE - 1) / SQUARE, whole = k - k % SBP_K_BLOCK;
    for (int64_t from = 0; from < groups; from += GROUPS) {
        const int64_t now = groups - from < GROUPS ? groups - from : GROUPS;
        T total[GROUPS][SQUARE];
        OF(unit) units[4];
        int waiting = 0;
        memset(total, 0, sizeof(total));
        for (int part = 0; part < 2; part++) { /* the whole blocks, then the shorter one */
            const int64_t steps = part ? k - whole : SBP_K_BLOCK;
            for (int64_t g = 0; g < now; g++) {
                const int64_t at = (from + g) * SQUARE, first = at + SQUARE <= count ? at : count - SQUARE;
                for (int64_t block = part ? whole : 0; block < (part ? k : whole); block += SBP_K_BLOCK) {
                    units[waiting++] = (OF(unit)){m + first * line + block, x + block, total[g]};
                    if (waiting == 4)
                        OF(add_units)(waiting, units, line, steps), waiting = 0;
                }
            }
            OF(add_units)(waiting, units, line, steps), waiting = 0;
        }
        for (int64_t g = 0; g < now; g++) {
            const int64_t at = (from + g) * SQUARE, first = at + SQUARE <= count ? at : count - SQUARE;
            for (int l = 0; l < SQUARE; l++)
                out[(first + l) * out_step] = total[g][l];
        }
    }
}

/* One output: SQUARE blocks side by side, those that are left one after the other. */
static T OF(dot)(int64_t k, const T *p, const T *x) {
    const int64_t square = SQUARE * SBP_K_BLOCK;
    T total = 0, chains[2][SQUARE];
    int64_t at = 0;
    for (; at + square <= k && SQUARE > 1;) {
        const OF(unit) u[2] = {{p + at, x + at, 0}, {p + at + square, x + at + square, 0}};
        const int two = at + 2 * square <= k;
        if (two)
            OF(run_units)(2, u, SBP_K_BLOCK, SBP_K_BLOCK, SBP_K_BLOCK, chains);
        else
            OF(run_units)(1, u, SBP_K_BLOCK, SBP_K_BLOCK, SBP_K_BLOCK, chains);
        for (int i = 0; i <= two; i++)
            for (int l = 0; l < SQUARE; l++)
                total += chains[i][l];
        at += (1 + two) * square;
    }
    while (at < k) { /* up to four blocks at once */
        const int64_t left = k - at, steps = left < SBP_K_BLOCK ? left : SBP_K_BLOCK;
        if (left >= 4 * SBP_K_BLOCK) {
            T a = 0, b = 0, c = 0, d = 0;
            const T *q = p + at, *y = x + at;
            for (int t = 0; t < SBP_K_BLOCK; t++) {
                a = OF(fma)(q[t], y[t], a);
                b = OF(fma)(q[t + SBP_K_BLOCK], y[t + SBP_K_BLOCK], b);
                c = OF(fma)(q[t + 2 * SBP_K_BLOCK], y[t + 2 * SBP_K_BLOCK], c);
                d = OF(fma)(q[t + 3 * SBP_K_BLOCK], y[t + 3 * SBP_K_BLOCK], d);
            }
            total = (((total + a) + b) + c) + d;
            at += 4 * SBP_K_BLOCK;
            continue;
        }
        T chain = 0;
        for (int64_t t = at; t < at + steps; t++)
            chain = OF(fma)(p[t], x[t], chain);
        total += chain;
        at += steps;
    }
    return total;
}

static void OF(gemv)(int64_t count, int64_t k, const void *matrix, int64_t line, int64_t step, const void *vector,
                     void *out, int64_t out_step) {
    T *to = out;
    if (line == 1 && (step != 1 || count >= SQUARE))
        OF(gemv_beside)(count, k, matrix, step, vector, to, out_step);
    else if (count >= SQUARE && SQUARE > 1)
        OF(gemv_groups)(count, k, matrix, line, vector, to, out_step);
    else
        for (int64_t i = 0; i < count; i++)
            to[i * out_step] = OF(dot)(k, (const T *)matrix + i * line, vector);
}
