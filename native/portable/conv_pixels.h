/* A convolution and its transpose: rows of output channels times vectors of pixels. */

/* One row of the image, between its zeros: the places that a stride takes together are put next to each other. */
static void CONV(pad_row)(const sbp_conv *c, const T *source, T *target) {
    const int64_t step = c->stride[2], before = c->before[2], room = c->padded[2] - before;
    const int64_t first = before < 0 ? -before : 0, end = c->size[2] < room ? c->size[2] : room;
    if (end <= first)
        return;
    if (step == 1) {
        memcpy(target + before + first, source + first, (size_t)(end - first) * sizeof(T));
        return;
    }
    for (int64_t x = first; x < end; x++)
        target[(x + before) % step * c->phase + (x + before) / step] = source[x];
}

/* Part: one (sample, channel) of the image. */
static void CONV(pad)(void *job, int64_t from, int64_t to) {
    const sbp_conv *c = job;
    for (int64_t part = from; part < to; part++) {
        const T *source = (const T *)c->image + part * c->size[0] * c->size[1] * c->size[2];
        T *target = (T *)c->pixels + part * c->channel_step;
        memset(target, 0, (size_t)c->channel_step * sizeof(T));
        for (int64_t z = 0; z < c->size[0]; z++)
            for (int64_t y = 0; y < c->size[1]; y++, source += c->size[2]) {
                const int64_t at_z = z + c->before[0], at_y = y + c->before[1];
                if (at_z >= 0 && at_y >= 0 && at_z < c->padded[0] && at_y < c->padded[1])
                    CONV(pad_row)(c, source, target + (at_z * c->padded[1] + at_y) * c->padded[2]);
            }
    }
}

/* Part: one (class, group, panel of output channels) of the weight. */
static void CONV(pack)(void *job, int64_t from, int64_t to) {
    const sbp_conv *c = job;
    for (int64_t part = from; part < to; part++) {
        const int64_t panel = part % c->panels, group = part / c->panels % c->groups;
        const sbp_conv_class *l = &c->class_[part / c->panels / c->groups];
        const int64_t first = SBP(conv_panel)(c->rows, c->panels, panel);
        const int64_t rows = SBP(conv_panel)(c->rows, c->panels, panel + 1) - first;
        const T *source = (const T *)c->weight + group * c->weight_group + first * c->weight_row;
        for (int64_t b = 0; b < l->blocks; b++) {
            const int64_t start = l->borders[b], terms = l->borders[b + 1] - start;
            T *target = (T *)l->packed + (group * l->terms + start) * c->rows + first * terms;
            for (int64_t i = 0; i < rows; i++)
                for (int64_t k = 0; k < terms; k++)
                    target[k * rows + i] = source[l->weights[start + k] + i * c->weight_row];
        }
    }
}

#define WIDTH (2 * LANES)
#define PIXELS (SBP_CONV_PANELS * WIDTH)

/* What a thread has: the places of its pixels, their factors term by term, their totals. */
typedef struct {
    int64_t place[PIXELS];             /* of each pixel in the padded image */
    int64_t runs[PIXELS], run_of[PIXELS]; /* starts of pixels that are next to each other, at most a vector of them */
    int64_t pixels, count;
    T factors[SBP_CONV_PANELS][SBP_CONV_K_BLOCK * WIDTH + LANES];
    T totals[];                        /* [rows][PIXELS] */
} CONV(space);

/* Finds `pixels` pixels of the class from number `first`, (sample, j0, j1, j2) in row-major order. */
static void CONV(find_pixels)(const sbp_conv *c, const sbp_conv_class *l, int64_t group, int64_t first,
                              CONV(space) * s) {
    const int64_t *n = l->count, all = c->samples * n[0] * n[1] * n[2];
    int64_t x = first % n[2], y = first / n[2] % n[1], z = first / n[2] / n[1] % n[0];
    int64_t sample = first / n[2] / n[1] / n[0];
    s->pixels = all - first < PIXELS ? all - first : PIXELS;
    s->count = 0;
    for (int64_t i = 0; i < s->pixels; i++) {
        const int64_t row = (z * c->stride[0] * c->padded[1] + y * c->stride[1]) * c->padded[2];
        s->place[i] = (sample * c->groups + group) * c->depth * c->channel_step + row + x;
        if (!i || !x || i % WIDTH == 0 || i - s->runs[s->count - 1] == LANES)
            s->runs[s->count++] = i;
        if (++x == n[2]) {
            x = 0;
            if (++y == n[1]) {
                y = 0;
                if (++z == n[0])
                    z = 0, sample++;
            }
        }
    }
}

/* The factors of one panel of pixels for some terms. A run is copied as a whole vector: what is too much is then
 * overwritten by the run after it. */
static void CONV(gather)(const T *image, const int64_t *places, int64_t terms, const CONV(space) * s, int64_t panel,
                         T *to) {
    const T *from[WIDTH];
    T *target[WIDTH];
    int64_t runs = 0;
    for (int64_t r = 0; r < s->count; r++)
        if (s->runs[r] / WIDTH == panel) {
            from[runs] = image + s->place[s->runs[r]];
            target[runs++] = to + s->runs[r] % WIDTH;
        }
    for (int64_t k = 0; k < terms; k++) {
        const int64_t at = places[k], row = k * WIDTH;
        for (int64_t r = 0; r < runs; r++)
            STORE(target[r] + row, LOAD(from[r] + at));
    }
}

static void CONV(block)(const sbp_conv *c, const sbp_conv_class *l, int64_t group, int64_t block, CONV(space) * s,
                        const int64_t *dense) {
    const int64_t start = l->borders[block], terms = l->borders[block + 1] - start;
    const T *image = (const T *)c->pixels, *packed = (const T *)l->packed + (group * l->terms + start) * c->rows;
    for (int64_t p = 0; p * WIDTH < s->pixels; p++) {
        const T *left = s->factors[p], *right = left + LANES;
        const int64_t *places = dense;
        if (c->is_direct) {
            places = l->places + start;
            left = image + s->place[p * WIDTH];
            right = p * WIDTH + LANES < s->pixels ? image + s->place[p * WIDTH + LANES] : left;
        } else {
            CONV(gather)(image, l->places + start, terms, s, p, s->factors[p]);
        }
        for (int64_t panel = 0; panel < c->panels; panel++) {
            const int64_t first = SBP(conv_panel)(c->rows, c->panels, panel);
            const int64_t rows = SBP(conv_panel)(c->rows, c->panels, panel + 1) - first;
            CONV(any_tile)(rows, terms, packed + first * terms, left, right, places,
                           s->totals + first * PIXELS + p * WIDTH, PIXELS);
        }
    }
}

/* Pixels of the totals to where they belong in the output. */
static void CONV(put)(const sbp_conv *c, const sbp_conv_class *l, int64_t group, int64_t first, const CONV(space) * s) {
    const int64_t *n = l->count, plane = n[0] * n[1] * n[2], area = c->out_size[0] * c->out_size[1] * c->out_size[2];
    for (int64_t i = 0, run; i < s->pixels; i += run) {
        const int64_t flat = (first + i) % plane, sample = (first + i) / plane, x = flat % n[2];
        const int64_t y = flat / n[2] % n[1], z = flat / n[2] / n[1];
        /* with one class, the pixels of a sample are next to each other; else those of a row are a step apart */
        run = c->classes == 1 ? plane - flat : n[2] - x;
        run = run < s->pixels - i ? run : s->pixels - i;
        const int64_t out_y = l->start[1] + l->step[1] * y, out_z = l->start[0] + l->step[0] * z;
        const int64_t place = c->classes == 1 ? flat
                                              : (out_z * c->out_size[1] + out_y) * c->out_size[2] + l->start[2] +
                                                    l->step[2] * x;
        const int64_t step = c->classes == 1 ? 1 : l->step[2];
        for (int64_t row = 0; row < c->rows; row++) {
            const int64_t channel = group * c->rows + row;
            const T *from = s->totals + row * PIXELS + i;
            T *to = (T *)c->out + (sample * c->groups * c->rows + channel) * area + place;
            if (c->bias) {
                const T bias = ((const T *)c->bias)[channel];
                for (int64_t j = 0; j < run; j++)
                    to[j * step] = from[j] + bias;
            } else if (step == 1) {
                memcpy(to, from, (size_t)run * sizeof(T));
            } else {
                for (int64_t j = 0; j < run; j++)
                    to[j * step] = from[j];
            }
        }
    }
}

/* Part: one (group, block of pixels, class). */
static void CONV(compute)(void *job, int64_t from, int64_t to) {
    sbp_conv *c = job;
    const size_t totals = (size_t)(c->rows * PIXELS) * sizeof(T);
    CONV(space) *s = malloc(sizeof *s + totals);
    if (!s) {
        c->failed = 1;
        return;
    }
    int64_t dense[SBP_CONV_K_BLOCK];
    for (int64_t k = 0; k < SBP_CONV_K_BLOCK; k++)
        dense[k] = k * WIDTH;
    memset(s->factors, 0, sizeof s->factors);
    for (int64_t part = from; part < to; part++) {
        const sbp_conv_class *l = &c->class_[part % c->classes];
        const int64_t group = part / c->classes / c->blocks, first = part / c->classes % c->blocks * PIXELS;
        if (first >= c->samples * l->count[0] * l->count[1] * l->count[2])
            continue;
        CONV(find_pixels)(c, l, group, first, s);
        memset(s->totals, 0, totals);
        for (int64_t b = 0; b < l->blocks; b++)
            CONV(block)(c, l, group, b, s, dense);
        CONV(put)(c, l, group, first, s);
    }
    free(s);
}
