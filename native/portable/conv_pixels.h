/* A convolution and its transpose: rows of output channels times vectors of pixels. */

/* One row of the image, between its zeros: the pixels that a stride takes together are put next to each other. */
static void CONV(pad_row)(const sbp_conv *c, const T *source, T *target) {
    const int64_t step = c->stride[2], before = c->before[2], room = c->padded[2] - before;
    const int64_t first = before < 0 ? -before : 0, end = c->size[2] < room ? c->size[2] : room;
    if (end <= first)
        return;
    if (step == 1) {
        memcpy(target + before + first, source + first, (size_t)(end - first) * sizeof(T));
        return;
    }
    for (int64_t phase = 0; phase < step; phase++) {
        int64_t x = first + (phase - (first + before) % step + step) % step;
        T *to = target + phase * c->phase + (x + before) / step;
        if (step == 2)
            for (; x < end; x += 2)
                *to++ = source[x];
        else
            for (; x < end; x += step)
                *to++ = source[x];
    }
}

static void CONV(pad_channel)(const sbp_conv *c, const T *source, T *target) {
    memset(target, 0, (size_t)c->channel_step * sizeof(T));
    for (int64_t z = 0; z < c->size[0]; z++)
        for (int64_t y = 0; y < c->size[1]; y++, source += c->size[2]) {
            const int64_t at_z = z + c->before[0], at_y = y + c->before[1];
            if (at_z >= 0 && at_y >= 0 && at_z < c->padded[0] && at_y < c->padded[1])
                CONV(pad_row)(c, source, target + (at_z * c->padded[1] + at_y) * c->padded[2]);
        }
}

/* Part: one (sample, channel) of the image. */
static void CONV(pad)(void *job, int64_t from, int64_t to) {
    const sbp_conv *c = job;
    const int64_t size = c->size[0] * c->size[1] * c->size[2];
    for (int64_t part = from; part < to; part++)
        CONV(pad_channel)(c, (const T *)c->image + part * size, (T *)c->pixels + part * c->channel_step);
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
            if (c->is_weight_in_order) {
                CONV(transpose)(source + l->weights[start], c->weight_row, rows, terms, target, rows);
                continue;
            }
            for (int64_t k = 0; k < terms; k++, target += rows)
                for (int64_t i = 0; i < rows; i++)
                    target[i] = source[l->weights[start + k] + i * c->weight_row];
        }
    }
}

#define WIDTH (2 * LANES)
#define PIXELS (SBP_CONV_PANELS * WIDTH)

/* Some samples of one group. */
typedef struct {
    const T *image; /* padded */
    int64_t group, first, samples, sample_step;
} CONV(region);

/* The data of a thread: the positions of its pixels, their factors term by term, their totals. */
typedef struct {
    int64_t runs[PIXELS];  /* starts of pixels that are next to each other, at most a vector of them */
    int64_t place[PIXELS]; /* of such a start in the padded image */
    int64_t pixels, count;
    T factors[SBP_CONV_PANELS][SBP_CONV_K_BLOCK * WIDTH + LANES] __attribute__((aligned(64)));
    T totals[] __attribute__((aligned(64))); /* [rows][PIXELS] */
} CONV(space);

/* Finds the region's pixels of the class from number `first`, (sample, j0, j1, j2) in row-major order. */
static void CONV(find_pixels)(const sbp_conv *c, const sbp_conv_class *l, const CONV(region) * r, int64_t first,
                              CONV(space) * s) {
    const int64_t *n = l->count, all = r->samples * n[0] * n[1] * n[2];
    int64_t x = first % n[2], y = first / n[2] % n[1], z = first / n[2] / n[1] % n[0];
    int64_t sample = first / n[2] / n[1] / n[0];
    s->pixels = all - first < PIXELS ? all - first : PIXELS;
    s->count = 0;
    for (int64_t i = 0; i < s->pixels;) {
        const int64_t row = (z * c->stride[0] * c->padded[1] + y * c->stride[1]) * c->padded[2];
        int64_t run = n[2] - x < LANES ? n[2] - x : LANES;
        run = run < WIDTH - i % WIDTH ? run : WIDTH - i % WIDTH;
        run = run < s->pixels - i ? run : s->pixels - i;
        s->place[i] = sample * r->sample_step + row + x;
        s->runs[s->count++] = i;
        i += run;
        if ((x += run) == n[2]) {
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
            V(store)(target[r] + row, V(load)(from[r] + at));
    }
}

static void CONV(block)(const sbp_conv *c, const sbp_conv_class *l, const CONV(region) * r, int64_t block,
                        CONV(space) * s, const int64_t *dense) {
    const int64_t start = l->borders[block], terms = l->borders[block + 1] - start;
    const T *image = r->image, *packed = (const T *)l->packed + (r->group * l->terms + start) * c->rows;
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
static void CONV(put)(const sbp_conv *c, const sbp_conv_class *l, const CONV(region) * r, int64_t first,
                      const CONV(space) * s) {
    const int64_t *n = l->count, plane = n[0] * n[1] * n[2], area = c->out_size[0] * c->out_size[1] * c->out_size[2];
    for (int64_t i = 0, run; i < s->pixels; i += run) {
        const int64_t flat = (first + i) % plane, sample = r->first + (first + i) / plane, x = flat % n[2];
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
            const int64_t channel = r->group * c->rows + row;
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

static void CONV(pixels)(const sbp_conv *c, const sbp_conv_class *l, const CONV(region) * r, int64_t first,
                         CONV(space) * s) {
    if (first >= r->samples * l->count[0] * l->count[1] * l->count[2])
        return;
    int64_t dense[SBP_CONV_K_BLOCK];
    for (int64_t k = 0; k < SBP_CONV_K_BLOCK; k++)
        dense[k] = k * WIDTH;
    CONV(find_pixels)(c, l, r, first, s);
    memset(s->totals, 0, (size_t)(c->rows * PIXELS) * sizeof(T));
    for (int64_t b = 0; b < l->blocks; b++)
        CONV(block)(c, l, r, b, s, dense);
    CONV(put)(c, l, r, first, s);
}

static CONV(space) * CONV(make_space)(sbp_conv *c) {
    void *memory = NULL;
    const size_t size = sizeof(CONV(space)) + (size_t)(c->rows * PIXELS) * sizeof(T);
    if (posix_memalign(&memory, 64, size)) {
        c->failed = 1;
        return NULL;
    }
    memset(memory, 0, sizeof(CONV(space)));
    return memory;
}

/* Part: one (group, block of pixels, class), of the image that `pad` has padded. */
static void CONV(compute)(void *job, int64_t from, int64_t to) {
    sbp_conv *c = job;
    CONV(space) *s = CONV(make_space)(c);
    for (int64_t part = from; s && part < to; part++) {
        const int64_t group = part / c->classes / c->blocks;
        const T *image = (const T *)c->pixels + group * c->depth * c->channel_step;
        const CONV(region) r = {image, group, 0, c->samples, c->groups * c->depth * c->channel_step};
        CONV(pixels)(c, &c->class_[part % c->classes], &r, part / c->classes % c->blocks * PIXELS, s);
    }
    free(s);
}

/* Part: one (run of samples, group), whose image is padded here, so that it stays in the cache. */
static void CONV(compute_samples)(void *job, int64_t from, int64_t to) {
    sbp_conv *c = job;
    const int64_t size = c->size[0] * c->size[1] * c->size[2], step = c->depth * c->channel_step;
    CONV(space) *s = CONV(make_space)(c);
    T *image = sbp_scratch(SBP_SCRATCH_FREE_1, (size_t)(c->run * step + 2 * LANES) * sizeof(T));
    if (!image)
        c->failed = 1;
    for (int64_t part = from; s && image && part < to; part++) {
        const int64_t group = part % c->groups, first = part / c->groups * c->run;
        const CONV(region) r = {image, group, first, c->samples - first < c->run ? c->samples - first : c->run, step};
        for (int64_t i = 0; i < r.samples * c->depth; i++) {
            const int64_t channel = ((first + i / c->depth) * c->groups + group) * c->depth + i % c->depth;
            CONV(pad_channel)(c, (const T *)c->image + channel * size, image + i * c->channel_step);
        }
        memset(image + r.samples * step, 0, 2 * LANES * sizeof(T));
        for (int64_t block = 0; block < c->blocks; block++)
            for (int64_t l = 0; l < c->classes; l++)
                CONV(pixels)(c, &c->class_[l], &r, block * PIXELS, s);
    }
    free(s);
}
