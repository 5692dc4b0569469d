/* The gradient of a depthwise weight: each channel of the image makes `rows` channels of the output, and lanes are
 * channels. The terms of a sum come in the order of conv_weight.h. */

/* Part: one (sample, row, vector of channels) of the output's gradient. */
static void CONV(depthwise_pack)(void *job, int64_t from, int64_t to) {
    const sbp_conv_weight *c = job;
    const int64_t vectors = c->channel_vectors, positions = c->terms / c->samples;
    for (int64_t part = from; part < to; part++) {
        const int64_t vector = part % vectors, row = part / vectors % c->rows, sample = part / vectors / c->rows;
        const int64_t channel = vector * LANES;
        const int64_t present = c->depth - channel < LANES ? c->depth - channel : LANES;
        const T *source = (const T *)c->gradient + ((sample * c->depth + channel) * c->rows + row) * positions;
        T *target = (T *)c->packed + ((row * vectors + vector) * c->terms + sample * positions) * LANES;
        if (present < LANES)
            memset(target, 0, (size_t)(positions * LANES) * sizeof(T));
        CONV(transpose)(source, c->rows * positions, present, positions, target, LANES);
    }
}

static inline __attribute__((always_inline)) void CONV(chains)(int taps, int64_t terms, const T *gradient,
                                                               const T *image, const int64_t *places,
                                                               const int64_t *shifts, T *totals) {
    VECTOR chain[SBP_CONV_TAPS];
#pragma GCC unroll 9
    for (int i = 0; i < taps; i++)
        chain[i] = V(zero)();
    for (int64_t k = 0; k < terms; k++) {
        const VECTOR factor = V(load)(gradient + k * LANES);
        const T *at = image + places[k];
#pragma GCC unroll 9
        for (int i = 0; i < taps; i++)
            chain[i] = V(fma)(factor, V(load)(at + shifts[i]), chain[i]);
    }
#pragma GCC unroll 9
    for (int i = 0; i < taps; i++)
        V(store)(totals + i * LANES, V(add)(V(load)(totals + i * LANES), chain[i]));
}

static void CONV(chains_of)(int64_t taps, int64_t terms, const T *gradient, const T *image, const int64_t *places,
                            const int64_t *shifts, T *totals) {
#define CHAINS(n)                                                                                                     \
    case n:                                                                                                           \
        CONV(chains)(n, terms, gradient, image, places, shifts, totals);                                              \
        break;
    switch (taps) { CHAINS(1) CHAINS(2) CHAINS(3) CHAINS(4) CHAINS(5) CHAINS(6) CHAINS(7) CHAINS(8) CHAINS(9) }
#undef CHAINS
}

/* Part: one (row, vector of channels, bunch of taps). */
static void CONV(depthwise_compute)(void *job, int64_t from, int64_t to) {
    const sbp_conv_weight *c = job;
    const int64_t vectors = c->channel_vectors, bunches = (c->taps + SBP_CONV_TAPS - 1) / SBP_CONV_TAPS;
    for (int64_t part = from; part < to; part++) {
        const int64_t bunch = part % bunches, vector = part / bunches % vectors, row = part / bunches / vectors;
        const int64_t first = c->taps * bunch / bunches, taps = c->taps * (bunch + 1) / bunches - first;
        const T *image = (const T *)c->pixels + vector * c->plane * LANES;
        const T *gradient = (const T *)c->packed + (row * vectors + vector) * c->terms * LANES;
        int64_t shifts[SBP_CONV_TAPS];
        T totals[SBP_CONV_TAPS * LANES] __attribute__((aligned(64))) = {0};
        for (int64_t i = 0; i < taps; i++)
            shifts[i] = CONV(shift_of_tap)(c, first + i) * LANES;
        for (int64_t k = 0; k < c->terms; k += SBP_CONV_K_BLOCK) {
            const int64_t terms = c->terms - k < SBP_CONV_K_BLOCK ? c->terms - k : SBP_CONV_K_BLOCK;
            CONV(chains_of)(taps, terms, gradient + k * LANES, image, c->places + k, shifts, totals);
        }
        for (int64_t channel = vector * LANES; channel < c->depth && channel < (vector + 1) * LANES; channel++)
            for (int64_t i = 0; i < taps; i++)
                ((T *)c->out)[(channel * c->rows + row) * c->taps + first + i] = totals[i * LANES + channel % LANES];
    }
}
