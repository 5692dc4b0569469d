#include "conv.h"

#include <stdlib.h>
#include <string.h>

#include "isa.h"
#include "portable.h"
#include "scratch.h"
#include "threads.h"

SBP_DECLARE_TABLES(sbp_conv_table, conv)

static int64_t product(const int64_t *n) { return n[0] * n[1] * n[2]; }
static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t least_parts(int64_t work) { return 1 + 65536 / (1 + work); }

/* The taps of one dimension that outputs start + step * j have: how far they are in the image from j * stride. */
typedef struct {
    int64_t count, *tap, *order, *place;
} taps;

typedef struct {
    int is_transposed;
    const int64_t *kernel, *stride, *padding, *dilation;
} shape;

static taps find_taps(const shape *s, int dim, int64_t start, int64_t *memory) {
    const int64_t n = s->kernel[dim], step = s->stride[dim], padding = s->padding[dim], dilation = s->dilation[dim];
    taps t = {0, memory, memory + n, memory + 2 * n};
    for (int64_t order = 0; order < n; order++) {
        const int64_t tap = s->is_transposed ? n - 1 - order : order;
        const int64_t from = s->is_transposed ? start + padding - tap * dilation : tap * dilation - padding;
        if (s->is_transposed && from % step)
            continue;
        t.tap[t.count] = tap, t.order[t.count] = order;
        t.place[t.count++] = s->is_transposed ? from / step : from;
    }
    return t;
}

/* Sets the part of the image that is needed in a dimension: c->before and c->padded. */
static void find_extent(sbp_conv *c, const shape *s, int dim, int64_t *memory) {
    const int64_t phases = s->is_transposed ? s->stride[dim] : 1;
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    for (int64_t start = 0; start < phases && start < c->out_size[dim]; start++) {
        const taps t = find_taps(s, dim, start, memory);
        const int64_t last = (up(c->out_size[dim] - start, phases) - 1) * c->stride[dim];
        for (int64_t i = 0; i < t.count; i++) {
            lowest = t.place[i] < lowest ? t.place[i] : lowest;
            highest = t.place[i] + last > highest ? t.place[i] + last : highest;
        }
    }
    c->before[dim] = lowest == INT64_MAX ? 0 : -lowest;
    c->padded[dim] = lowest == INT64_MAX ? 1 : highest - lowest + 1;
}

static int64_t place_in_image(const sbp_conv *c, const int64_t *at) {
    const int64_t x = at[2] + c->before[2], step = c->stride[2];
    const int64_t row = (at[0] + c->before[0]) * c->padded[1] + at[1] + c->before[1];
    return row * c->padded[2] + (step == 1 ? x : x % step * c->phase + x / step);
}

/* The terms of a class, in ascending order, and where each chain ends. */
static void list_terms(const sbp_conv *c, const shape *s, sbp_conv_class *l, const taps *t) {
    const int64_t all = product(s->kernel), channel_weight = s->is_transposed ? c->rows * all : all;
    int64_t n = 0, block = -1;
    for (int64_t channel = 0; channel < c->depth; channel++)
        for (int64_t z = 0; z < t[0].count; z++)
            for (int64_t y = 0; y < t[1].count; y++)
                for (int64_t x = 0; x < t[2].count; x++, n++) {
                    const int64_t at[3] = {t[0].place[z], t[1].place[y], t[2].place[x]};
                    const int64_t order =
                        (t[0].order[z] * s->kernel[1] + t[1].order[y]) * s->kernel[2] + t[2].order[x];
                    const int64_t tap = (t[0].tap[z] * s->kernel[1] + t[1].tap[y]) * s->kernel[2] + t[2].tap[x];
                    l->places[n] = channel * c->channel_step + place_in_image(c, at);
                    l->weights[n] = channel * channel_weight + tap;
                    if ((channel * all + order) / SBP_CONV_K_BLOCK != block) {
                        block = (channel * all + order) / SBP_CONV_K_BLOCK;
                        l->borders[l->blocks++] = n;
                    }
                }
    l->borders[l->blocks] = n;
}

static int make_class(const sbp_conv *c, const shape *s, int64_t number, int64_t *memory, int64_t size) {
    sbp_conv_class *l = &c->class_[number];
    const int64_t longest = s->kernel[0] > s->kernel[1] ? s->kernel[0] : s->kernel[1];
    const int64_t room = 3 * (longest > s->kernel[2] ? longest : s->kernel[2]);
    taps t[3];
    for (int dim = 2; dim >= 0; dim--) {
        const int64_t phases = s->is_transposed ? s->stride[dim] : 1;
        l->start[dim] = number % phases, l->step[dim] = phases;
        number /= phases;
        l->count[dim] = l->start[dim] < c->out_size[dim] ? up(c->out_size[dim] - l->start[dim], phases) : 0;
        t[dim] = find_taps(s, dim, l->start[dim], memory + dim * room);
    }
    l->terms = c->depth * t[0].count * t[1].count * t[2].count;
    l->places = malloc((size_t)(3 * l->terms + 2) * sizeof(int64_t));
    l->packed = malloc((size_t)(c->groups * c->rows * l->terms * size + 1));
    if (!l->places || !l->packed)
        return 0;
    l->weights = l->places + l->terms, l->borders = l->weights + l->terms;
    list_terms(c, s, l, t);
    return 1;
}

static int make_classes(sbp_conv *c, const shape *s, int64_t size) {
    const int64_t room = 3 * (s->kernel[0] + s->kernel[1] + s->kernel[2]) * 3;
    int64_t *memory = malloc((size_t)room * sizeof(int64_t));
    c->class_ = calloc((size_t)c->classes, sizeof *c->class_);
    int made = memory && c->class_;
    if (made) {
        for (int dim = 0; dim < 3; dim++)
            find_extent(c, s, dim, memory);
        c->phase = up(c->padded[2], c->stride[2]);
        c->padded[2] = c->phase * c->stride[2];
        c->channel_step = product(c->padded);
    }
    for (int64_t i = 0; made && i < c->classes; i++)
        made = make_class(c, s, i, memory, size);
    free(memory);
    return made;
}

static void end_conv(sbp_conv *c) {
    for (int64_t i = 0; c->class_ && i < c->classes; i++) {
        free(c->class_[i].places);
        free(c->class_[i].packed);
    }
    free(c->class_);
    if (c->pixels != c->image)
        sbp_give_back(c->pixels, c->pixels_bytes);
}

#define CACHED 2000000 /* bytes of padded image that a thread may have for itself */

/* Returns how many samples a thread pads and computes together: enough to fill the vectors, 0 if that shares out
 * badly. */
static int64_t samples_together(const sbp_conv *c, int64_t pixels, int64_t most, int64_t size) {
    const int64_t run = pixels ? up(2 * most, pixels) : 1, parts = up(c->samples, run) * c->groups;
    const int is_even = parts % sbp_threads() == 0 || parts >= 8 * sbp_threads();
    return is_even && run * c->depth * c->channel_step * size <= CACHED ? run : 0;
}

/* The image can be read as it is. */
static int is_whole(const sbp_conv *c) {
    int same = c->is_direct && c->stride[2] == 1;
    for (int dim = 0; dim < 3; dim++)
        same &= c->before[dim] == 0 && c->padded[dim] == c->size[dim];
    return same;
}

static int64_t run_padded(sbp_conv *c, const sbp_conv_steps *steps, int64_t size, int64_t work) {
    const int64_t channels = c->groups * c->depth, all = c->samples * channels * c->channel_step;
    if (is_whole(c)) {
        c->pixels = (char *)c->image;
    } else {
        c->pixels = sbp_borrow(SBP_SCRATCH_FREE_1, c->pixels_bytes = (size_t)((all + 2 * steps->lanes) * size));
        if (!c->pixels)
            return SBP_NO_MEMORY;
        sbp_share_out(c->samples * channels, least_parts(c->channel_step), steps->pad, c);
        memset(c->pixels + all * size, 0, (size_t)(2 * steps->lanes * size));
    }
    sbp_share_out(c->groups * c->blocks * c->classes, least_parts(work), steps->compute, c);
    return 0;
}

static int64_t run_conv(sbp_conv *c, const sbp_conv_steps *steps, int64_t size) {
    const int64_t most = steps->lanes * 2 * SBP_CONV_PANELS;
    int64_t pixels = 0, terms = 0, result = 0;
    c->is_direct = 1;
    for (int64_t i = 0; i < c->classes; i++) {
        const int64_t n = product(c->class_[i].count);
        pixels = n > pixels ? n : pixels;
        terms = c->class_[i].terms > terms ? c->class_[i].terms : terms;
        c->is_direct &= c->class_[i].count[2] % steps->lanes == 0;
    }
    c->panels = up(c->rows, steps->most_rows);
    c->run = is_whole(c) ? 0 : samples_together(c, pixels, most, size);
    c->blocks = up((c->run ? c->run : c->samples) * pixels, most);
    sbp_share_out(c->classes * c->groups * c->panels, least_parts(terms * steps->most_rows), steps->pack, c);
    if (c->run)
        sbp_share_out(up(c->samples, c->run) * c->groups, least_parts(terms * c->rows * most * c->blocks),
                      steps->compute_samples, c);
    else
        result = run_padded(c, steps, size, terms * c->rows * most);
    return c->failed ? SBP_NO_MEMORY : result;
}

int64_t samebits_portable_conv(const sbp_conv_parameters *p) {
    const int64_t all = product(p->kernel), size = p->is_f64 ? 8 : 4;
    const shape s = {(int)p->is_transposed, p->kernel, p->stride, p->padding, p->dilation};
    const sbp_conv_table *table = conv_now();
    sbp_conv c = {.image = p->image, .weight = p->weight, .bias = p->bias, .out = p->out, .samples = p->samples,
                  .groups = p->groups, .depth = p->depth, .rows = p->rows};
    for (int dim = 0; dim < 3; dim++) {
        c.size[dim] = p->size[dim], c.out_size[dim] = p->out_size[dim];
        c.stride[dim] = s.is_transposed ? 1 : s.stride[dim];
    }
    c.is_weight_in_order = !s.is_transposed;
    c.weight_row = s.is_transposed ? all : c.depth * all;
    c.weight_group = c.rows * c.depth * all;
    c.classes = s.is_transposed ? product(s.stride) : 1;
    const int64_t result =
        make_classes(&c, &s, size) ? run_conv(&c, p->is_f64 ? &table->f64 : &table->f32, size) : SBP_NO_MEMORY;
    end_conv(&c);
    return result;
}

static void list_places(const sbp_conv_weight *c, int64_t lanes, int64_t sample_step) {
    int64_t *place = c->places;
    for (int64_t n = 0; n < c->samples; n++)
        for (int64_t z = 0; z < c->out_size[0]; z++)
            for (int64_t y = 0; y < c->out_size[1]; y++)
                for (int64_t x = 0; x < c->out_size[2]; x++) {
                    const int64_t row = z * c->stride[0] * c->padded[1] + y * c->stride[1];
                    *place++ = n * sample_step + (row * c->padded[2] + x * c->stride[2]) * lanes;
                }
}

static int64_t run_weight(sbp_conv_weight *c, const sbp_conv_steps *steps, int64_t size) {
    const int64_t lanes = c->is_gathered ? 1 : steps->lanes;
    const int64_t vectors = c->is_gathered ? c->depth : c->channel_vectors, pairs = (c->vectors + 1) / 2;
    const int64_t sample_step = c->groups * vectors * c->plane * lanes;
    c->pixels_bytes = (size_t)((c->samples * sample_step + steps->lanes) * size);
    c->packed_bytes = (size_t)(c->groups * c->rows * c->terms * (c->is_depthwise ? vectors * lanes : 1) * size + 1);
    c->pixels = sbp_borrow(SBP_SCRATCH_FREE_1, c->pixels_bytes);
    c->packed = sbp_borrow(SBP_SCRATCH_FREE_2, c->packed_bytes);
    c->places = malloc((size_t)(c->terms + 1) * sizeof(int64_t));
    if (!c->pixels || !c->packed || !c->places)
        return SBP_NO_MEMORY;
    list_places(c, lanes, sample_step);
    sbp_share_out(c->samples * c->groups * vectors, least_parts(c->plane * lanes), steps->weight_pad, c);
    if (c->is_depthwise) {
        const int64_t parts = c->rows * vectors;
        sbp_share_out(c->samples * parts, least_parts(c->terms / c->samples * lanes), steps->depthwise_pack, c);
        sbp_share_out(parts * up(c->taps, SBP_CONV_TAPS), least_parts(c->terms * lanes), steps->depthwise_compute, c);
        return 0;
    }
    sbp_share_out(c->groups * up(c->terms, SBP_CONV_K_BLOCK), least_parts(SBP_CONV_K_BLOCK * c->rows),
                  steps->weight_pack, c);
    sbp_share_out(c->groups * pairs, least_parts(c->terms * c->rows * steps->lanes * 2), steps->weight_compute, c);
    return c->failed ? SBP_NO_MEMORY : 0;
}

int64_t samebits_portable_conv_weight(const sbp_conv_weight_parameters *p) {
    const sbp_conv_table *table = conv_now();
    const sbp_conv_steps *steps = p->is_f64 ? &table->f64 : &table->f32;
    sbp_conv_weight c = {.image = p->image, .gradient = p->gradient, .out = p->of_weight, .samples = p->samples,
                         .groups = p->groups, .depth = p->depth, .rows = p->rows, .taps = product(p->kernel),
                         .terms = p->samples * product(p->out_size)};
    for (int dim = 0; dim < 3; dim++) {
        c.size[dim] = p->size[dim], c.out_size[dim] = p->out_size[dim], c.kernel[dim] = p->kernel[dim];
        c.stride[dim] = p->stride[dim], c.before[dim] = p->padding[dim], c.dilation[dim] = p->dilation[dim];
        c.padded[dim] = (c.out_size[dim] - 1) * c.stride[dim] + (c.kernel[dim] - 1) * c.dilation[dim] + 1;
    }
    c.plane = product(c.padded);
    c.is_depthwise = c.depth == 1 && c.groups > 1 && c.groups >= c.rows;
    if (c.is_depthwise)
        c.depth = c.groups, c.groups = 1;
    c.channel_vectors = up(c.depth, steps->lanes);
    c.is_gathered = !c.is_depthwise && c.depth * 2 <= steps->lanes;
    c.vectors = c.is_gathered ? up(c.depth * c.taps, steps->lanes) : c.taps * c.channel_vectors;
    c.panels = up(c.rows, steps->most_rows);
    const int64_t result = run_weight(&c, steps, p->is_f64 ? 8 : 4);
    sbp_give_back(c.pixels, c.pixels_bytes);
    sbp_give_back(c.packed, c.packed_bytes);
    free(c.places);
    return result;
}
