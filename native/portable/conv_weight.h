/* The gradient of a weight: rows of output channels times vectors of (tap, input channel), over (sample, position). */

static int64_t CONV(place_of)(const sbp_conv_weight *c, int64_t z, int64_t y, int64_t x) {
    return (z * c->padded[1] + y) * c->padded[2] + x;
}

/* Part: one (sample, group, vector of channels) of the image; where columns are gathered, one (sample, channel). */
static void CONV(weight_pad)(void *job, int64_t from, int64_t to) {
    const sbp_conv_weight *c = job;
    const int64_t lanes = c->is_gathered ? 1 : LANES, size = c->size[0] * c->size[1] * c->size[2];
    const int64_t vectors = c->is_gathered ? c->depth : c->channel_vectors;
    for (int64_t part = from; part < to; part++) {
        const int64_t channel = part % vectors * lanes;
        const int64_t present = c->depth - channel < lanes ? c->depth - channel : lanes;
        const T *source = (const T *)c->image + (part / vectors * c->depth + channel) * size;
        T *target = (T *)c->pixels + part * c->plane * lanes;
        memset(target, 0, (size_t)(c->plane * lanes) * sizeof(T));
        for (int64_t z = 0; z < c->size[0]; z++)
            for (int64_t y = 0; y < c->size[1]; y++, source += c->size[2]) {
                const int64_t at_z = z + c->before[0], at_y = y + c->before[1];
                if (at_z >= c->padded[0] || at_y >= c->padded[1])
                    continue;
                T *line = target + CONV(place_of)(c, at_z, at_y, c->before[2]) * lanes;
                const int64_t room = c->padded[2] - c->before[2], width = c->size[2] < room ? c->size[2] : room;
                CONV(transpose)(source, size, present, width, line, lanes);
            }
    }
}

/* Part: one (group, block of terms) of the output's gradient. */
static void CONV(weight_pack)(void *job, int64_t from, int64_t to) {
    const sbp_conv_weight *c = job;
    const int64_t blocks = (c->terms + SBP_CONV_K_BLOCK - 1) / SBP_CONV_K_BLOCK;
    const int64_t positions = c->terms / c->samples;
    for (int64_t part = from; part < to; part++) {
        const int64_t start = part % blocks * SBP_CONV_K_BLOCK, group = part / blocks;
        const int64_t terms = c->terms - start < SBP_CONV_K_BLOCK ? c->terms - start : SBP_CONV_K_BLOCK;
        T *target = (T *)c->packed + (group * c->terms + start) * c->rows;
        for (int64_t panel = 0; panel < c->panels; panel++) {
            const int64_t first = SBP(conv_panel)(c->rows, c->panels, panel);
            const int64_t rows = SBP(conv_panel)(c->rows, c->panels, panel + 1) - first;
            for (int64_t k = 0, run; k < terms; k += run, target += rows * run) {
                const int64_t sample = (start + k) / positions, position = (start + k) % positions;
                const T *source = (const T *)c->gradient +
                                  ((sample * c->groups + group) * c->rows + first) * positions + position;
                run = positions - position < terms - k ? positions - position : terms - k;
                CONV(transpose)(source, positions, rows, run, target, rows);
            }
        }
    }
}

#define COLUMNS 18 /* vectors that are computed together */

typedef struct {
    int64_t column[COLUMNS * LANES]; /* where in the weight's row; less than 0: nowhere */
    int64_t base[COLUMNS];           /* of a vector in the padded image of a group */
    int64_t shift[COLUMNS * LANES];  /* gathered: of a column in the padded image of a group */
    T factors[COLUMNS / 2][SBP_CONV_K_BLOCK * 2 * LANES + LANES] __attribute__((aligned(64)));
    T totals[] __attribute__((aligned(64))); /* [rows][COLUMNS * LANES] */
} CONV(weight_space);

static int64_t CONV(shift_of_tap)(const sbp_conv_weight *c, int64_t tap) {
    const int64_t x = tap % c->kernel[2], y = tap / c->kernel[2] % c->kernel[1], z = tap / c->kernel[2] / c->kernel[1];
    return CONV(place_of)(c, z * c->dilation[0], y * c->dilation[1], x * c->dilation[2]);
}

static void CONV(find_columns)(const sbp_conv_weight *c, int64_t first, CONV(weight_space) * s) {
    for (int64_t v = 0; v < COLUMNS; v++) {
        const int64_t vector = first + v < c->vectors ? first + v : c->vectors - 1;
        const int64_t tap = vector % c->taps, channels = vector / c->taps;
        if (!c->is_gathered)
            s->base[v] = (channels * c->plane + CONV(shift_of_tap)(c, tap)) * LANES;
        for (int64_t lane = 0; lane < LANES; lane++) {
            const int64_t channel = channels * LANES + lane, flat = vector * LANES + lane;
            int64_t *column = &s->column[v * LANES + lane];
            if (c->is_gathered)
                *column = flat < c->depth * c->taps ? flat : -1;
            else
                *column = channel < c->depth ? channel * c->taps + tap : -1;
            const int64_t seen = *column < 0 ? 0 : *column;
            s->shift[v * LANES + lane] = seen / c->taps * c->plane + CONV(shift_of_tap)(c, seen % c->taps);
            if (first + v >= c->vectors)
                *column = -1;
        }
    }
}

/* Columns that are next to each other in the image are copied as a whole vector: what is too much is then overwritten
 * by those after them. */
static void CONV(weight_gather)(const T *image, const int64_t *places, int64_t terms, const int64_t *shift,
                                int64_t columns, T *to) {
    int64_t starts[2 * LANES], runs = 0;
    for (int64_t i = 0; i < columns; i++)
        if (!i || shift[i] != shift[i - 1] + 1 || i - starts[runs - 1] == LANES)
            starts[runs++] = i;
    if (columns < 2 * LANES)
        memset(to, 0, (size_t)(terms * 2 * LANES) * sizeof(T));
    for (int64_t k = 0; k < terms; k++, to += 2 * LANES)
        for (int64_t r = 0; r < runs; r++)
            V(store)(to + starts[r], V(load)(image + places[k] + shift[starts[r]]));
}

static void CONV(weight_block)(const sbp_conv_weight *c, int64_t group, int64_t start, int64_t vectors,
                               CONV(weight_space) * s, const int64_t *dense) {
    const int64_t terms = c->terms - start < SBP_CONV_K_BLOCK ? c->terms - start : SBP_CONV_K_BLOCK;
    const int64_t group_step = (c->is_gathered ? c->depth : c->channel_vectors * LANES) * c->plane;
    const T *image = (const T *)c->pixels + group * group_step;
    const T *packed = (const T *)c->packed + (group * c->terms + start) * c->rows;
    for (int64_t v = 0; v < vectors; v += 2) {
        const T *left = image + s->base[v], *right = image + s->base[v + 1];
        const int64_t *places = c->places + start;
        if (c->is_gathered) {
            int64_t columns = 2 * LANES;
            while (columns && s->column[v * LANES + columns - 1] < 0)
                columns--;
            CONV(weight_gather)(image, places, terms, s->shift + v * LANES, columns, s->factors[v / 2]);
            left = s->factors[v / 2], right = left + LANES, places = dense;
        }
        for (int64_t panel = 0; panel < c->panels; panel++) {
            const int64_t first = SBP(conv_panel)(c->rows, c->panels, panel);
            const int64_t rows = SBP(conv_panel)(c->rows, c->panels, panel + 1) - first;
            CONV(any_tile)(rows, terms, packed + first * terms, left, right, places,
                           s->totals + first * COLUMNS * LANES + v * LANES, COLUMNS * LANES);
        }
    }
}

static void CONV(weight_put)(const sbp_conv_weight *c, int64_t group, const CONV(weight_space) * s) {
    for (int64_t row = 0; row < c->rows; row++) {
        T *to = (T *)c->out + (group * c->rows + row) * c->depth * c->taps;
        for (int64_t i = 0; i < COLUMNS * LANES; i++)
            if (s->column[i] >= 0)
                to[s->column[i]] = s->totals[row * COLUMNS * LANES + i];
    }
}

/* Part: one (group, pair of vectors of columns). */
static void CONV(weight_compute)(void *job, int64_t from, int64_t to) {
    sbp_conv_weight *c = job;
    const size_t totals = (size_t)(c->rows * COLUMNS * LANES) * sizeof(T);
    const int64_t pairs = (c->vectors + 1) / 2;
    void *memory = NULL;
    CONV(weight_space) *s = posix_memalign(&memory, 64, sizeof *s + totals) ? NULL : memory;
    if (!s) {
        c->failed = 1;
        return;
    }
    int64_t dense[SBP_CONV_K_BLOCK];
    for (int64_t k = 0; k < SBP_CONV_K_BLOCK; k++)
        dense[k] = k * 2 * LANES;
    memset(s->base, 0, sizeof s->base);
    for (int64_t part = from, many; part < to; part += many) {
        const int64_t group = part / pairs, pair = part % pairs;
        many = pairs - pair < COLUMNS / 2 ? pairs - pair : COLUMNS / 2;
        many = many < to - part ? many : to - part;
        CONV(find_columns)(c, pair * 2, s);
        for (int64_t i = many * 2 * LANES; i < COLUMNS * LANES; i++)
            s->column[i] = -1;
        memset(s->totals, 0, totals);
        for (int64_t start = 0; start < c->terms; start += SBP_CONV_K_BLOCK)
            CONV(weight_block)(c, group, start, many * 2, s, dense);
        CONV(weight_put)(c, group, s);
    }
    free(s);
}
