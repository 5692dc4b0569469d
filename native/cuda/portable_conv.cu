/* Convolutions in float32 and the gradients of their weights, tile by tile: the products of gemm_tile.h, whose panels are
 * gathered from the image. CONV_ROWS: channels of the output in a tile; CONV_COLUMNS: pixels of all samples, or (channel,
 * tap) of the weight.
 *
 * The outputs of a transposed convolution are in classes, one for each remainder of the position by the stride. All in a
 * class meet the same taps, which are every so many in each dimension. The other taps meet the stride's zeros: they are
 * left out where all weights are finite, and no bit shows it. */
#include "gemm_tile.h"
#include "portable_conv.h"

#define CONV_DEPTH 16
#define CONV_NOWHERE (-(1 << 30)) /* added to any position, it is outside */

typedef gemm_shape<CONV_ROWS, CONV_COLUMNS, CONV_DEPTH, 3, CONV_ROWS < 64 ? 4 : 8, TOTALS_IN_SHARED, 1, 0> conv_shape;
typedef gemm_shape<CONV_ROWS, CONV_COLUMNS, CONV_DEPTH, 3, CONV_ROWS < 64 ? 4 : 8, TOTALS_IN_SHARED, 1, 1>
    conv_weight_shape;
typedef gemm_shape<CONV_ROWS, CONV_COLUMNS, CONV_DEPTH, 3, CONV_ROWS < 64 ? 4 : 8, TOTALS_APART, 1, 1>
    conv_chains_shape;

/* Divides whole numbers below 2^31: n / d = (n + high half of n * multiplier) >> shift (T. Granlund, P. Montgomery,
 * "Division by Invariant Integers using Multiplication", 1994, section 4). */
struct conv_divider {
    uint32_t divisor, multiplier, shift;
    __device__ explicit conv_divider(int64_t d) : divisor((uint32_t)d), shift(0) {
        while (((uint64_t)1 << shift) < divisor)
            shift++;
        multiplier = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << shift) - divisor)) / divisor + 1);
    }
    __device__ int quotient(int n) const { return (int)((__umulhi((uint32_t)n, multiplier) + (uint32_t)n) >> shift); }
    __device__ int quotient(int n, int *rest) const {
        const int found = quotient(n);
        *rest = n - found * (int)divisor;
        return found;
    }
};

/* The position in three dimensions of a number in row-major order. */
struct conv_positions {
    conv_divider plane, row;
    __device__ explicit conv_positions(const int64_t *sizes) : plane(sizes[1] * sizes[2]), row(sizes[2]) {}
    __device__ void of(int i, int *at) const {
        at[0] = plane.quotient(i, &i);
        at[1] = row.quotient(i, &at[2]);
    }
};

/* Where a tap meets the image, from a pixel's own place, and where it is in the weight, or its channel in the image. */
struct alignas(16) conv_tap {
    int at[3], place;
};

/* The place in a channel of the image where a tap meets, or -1. */
SBP_FUNCTION int conv_met(const int *pixel, const conv_tap &tap, const int64_t *size) {
    const int z = pixel[0] + tap.at[0], y = pixel[1] + tap.at[1], x = pixel[2] + tap.at[2];
    const bool is_inside = (unsigned)z < (unsigned)size[0] && (unsigned)y < (unsigned)size[1] &&
                           (unsigned)x < (unsigned)size[2];
    return is_inside ? (z * (int)size[1] + y) * (int)size[2] + x : -1;
}

/* The taps of one dimension that a class of outputs meets: first, first + step, ... */
struct conv_axis {
    int first, step, count;
    __device__ int before(int tap) const {
        const int found = tap <= first ? 0 : (tap - first + step - 1) / step;
        return found < count ? found : count;
    }
    __device__ bool has(int tap) const { return tap >= first && (tap - first) % step == 0 && count > 0; }
};

/* What the spread gradient has before the tap, for an output whose position has this remainder; see the page. */
SBP_FUNCTION int conv_spread(const sbp_conv_parameters &p, int d, int remainder, int tap) {
    return remainder + tap * (int)p.dilation[d] - (int)(p.dilation[d] * (p.kernel[d] - 1) - p.padding[d]);
}

SBP_FUNCTION conv_axis conv_axis_of(const sbp_conv_parameters &p, int d, int remainder) {
    const int stride = (int)p.stride[d], kernel = (int)p.kernel[d];
    conv_axis axis = {0, 1, 0};
    int divides = 1;
    while (divides * p.dilation[d] % stride != 0)
        divides++;
    axis.step = divides;
    while (axis.first < axis.step && conv_spread(p, d, remainder, axis.first) % stride != 0)
        axis.first++;
    if (axis.first < axis.step && axis.first < kernel)
        axis.count = (kernel - axis.first + axis.step - 1) / axis.step;
    return axis;
}

/* The outputs that a thread block computes, and the taps that they meet. */
struct conv_class {
    conv_axis axes[3];
    int remainder[3], met, taps; /* met: taps of a channel that take part */

    __device__ conv_class(const sbp_conv_parameters &p, int number) {
        taps = (int)sbd_volume(p.kernel);
        for (int d = 2; d >= 0; d--) {
            const int classes = p.is_transposed ? (int)p.stride[d] : 1;
            remainder[d] = number % classes;
            number /= classes;
        }
        if (p.is_transposed)
            for (int d = 0; d < 3; d++)
                axes[d] = conv_axis_of(p, d, remainder[d]);
        else
            take_all(p);
        met = axes[0].count * axes[1].count * axes[2].count;
    }
    __device__ void take_all(const sbp_conv_parameters &p) {
        for (int d = 0; d < 3; d++)
            axes[d] = {0, 1, (int)p.kernel[d]};
        met = taps;
    }
    /* How many of the terms before term k take part. */
    __device__ int before(int k, const int64_t *kernel) const {
        const sbd_place tap = sbd_place_of(k % taps, kernel);
        const int z = (int)tap.at[0], y = (int)tap.at[1], x = (int)tap.at[2];
        int in_channel = axes[0].before(z) * axes[1].count * axes[2].count;
        if (axes[0].has(z))
            in_channel += axes[1].before(y) * axes[2].count + (axes[1].has(y) ? axes[2].before(x) : 0);
        return k / taps * met + in_channel;
    }
    __device__ conv_tap tap(const sbp_conv_parameters &p, int number) const {
        const int last = axes[2].count, middle = axes[1].count;
        const int in_order[3] = {number / (middle * last), number / last % middle, number % last};
        conv_tap found = {{0, 0, 0}, 0};
        for (int d = 0; d < 3; d++) {
            const int at = axes[d].first + in_order[d] * axes[d].step;
            found.place = found.place * (int)p.kernel[d] + at;
            if (p.is_transposed) {
                const int spread = conv_spread(p, d, remainder[d], at);
                found.at[d] = spread % p.stride[d] == 0 ? spread / (int)p.stride[d] : CONV_NOWHERE;
            } else {
                found.at[d] = at * (int)p.dilation[d] - (int)p.padding[d];
            }
        }
        if (p.is_transposed)
            found.place = taps - 1 - found.place;
        return found;
    }
};

/* How an output is numbered in its class: by sample, then by position in steps of the stride. */
struct conv_numbers {
    int counts[3], each;
    __device__ explicit conv_numbers(const sbp_conv_parameters &p) {
        each = 1;
        for (int d = 0; d < 3; d++) {
            const int step = p.is_transposed ? (int)p.stride[d] : 1;
            counts[d] = ((int)p.out_size[d] + step - 1) / step;
            each *= counts[d];
        }
    }
    __device__ int of(int number, int *at) const {
        const int sample = number / each, i = number % each;
        at[0] = i / (counts[1] * counts[2]), at[1] = i / counts[2] % counts[1], at[2] = i % counts[2];
        return sample;
    }
};

SBP_FUNCTION int conv_classes(const sbp_conv_parameters &p) { return p.is_transposed ? (int)sbd_volume(p.stride) : 1; }

/* Whether a weight of the channels from `first_m` on is infinite or NaN: then the stride's zeros show. */
template <class SHAPE>
SBP_FUNCTION bool conv_has_endless(const sbp_conv_parameters &p, const float *weight, int first_m) {
    const int rows = (int)p.rows - first_m < SHAPE::rows ? (int)p.rows - first_m : SHAPE::rows;
    const int taps = (int)sbd_volume(p.kernel), each = rows * taps;
    int found = 0;
    for (int channel = 0; channel < (int)p.depth; channel++)
        for (int i = threadIdx.x; i < each; i += SHAPE::threads)
            found |= !(sbd_abs(weight[((int64_t)channel * p.rows + first_m) * taps + i]) < sbd_infinity<float>());
    return __syncthreads_or(found) != 0;
}

/* A tile of a convolution or of its transpose. */
template <class SHAPE> struct conv_problem {
    const sbp_conv_parameters &p;
    const float *weight, *image; /* of the group; `image`: of this thread's pixel */
    const int *starts;           /* in shared memory: how many terms are before each block of k */
    conv_divider of_taps;
    int blocks, log_steps, pixel[3], row_step, channel_step;

    /* Of a channel, those that take part. */
    __device__ static conv_tap *taps() {
        GEMM_SHARED(shared);
        return (conv_tap *)(shared + SHAPE::shared_floats);
    }
    __device__ static int first_m() { return blockIdx.y * SHAPE::rows; }

    /* Each block has as many steps; the last ones of some have no terms. */
    __device__ int steps() const { return blocks << log_steps; }
    __device__ int first(int step) const {
        return starts[step >> log_steps] + (step & ((1 << log_steps) - 1)) * SHAPE::depth;
    }
    __device__ int end(int step) const { return starts[(step >> log_steps) + 1]; }
    __device__ int count(int step) const { return end(step) - first(step); }
    __device__ bool ends(int step) const { return (step + 1 & ((1 << log_steps) - 1)) == 0; }
    __device__ void fill_rows(float *panel, int step) const {
        int number;
        const int term = first(step) + (int)threadIdx.x % SHAPE::depth, line = threadIdx.x / SHAPE::depth;
        const int channel = of_taps.quotient(term, &number);
        const bool takes_part = term < end(step);
        const int from = takes_part ? (first_m() + line) * row_step + channel * channel_step + taps()[number].place : 0;
        float *to = panel + threadIdx.x % SHAPE::depth * SHAPE::a_row + line;
#pragma unroll
        for (int e = 0; e < SHAPE::rows * SHAPE::depth / SHAPE::threads; e++) {
            const int down = e * (SHAPE::threads / SHAPE::depth);
            const bool is_inside = takes_part && first_m() + line + down < (int)p.rows;
            gemm_copy(to + down, weight + (is_inside ? from + down * row_step : 0), is_inside);
        }
    }
    __device__ void fill_columns(float *panel, int step) const {
        const int last = end(step), begin = first(step) + (int)threadIdx.x / SHAPE::columns, pixels = (int)sbd_volume(p.size);
        float *to = panel + threadIdx.x / SHAPE::columns * SHAPE::b_row + threadIdx.x % SHAPE::columns;
#pragma unroll
        for (int e = 0; e < SHAPE::columns * SHAPE::depth / SHAPE::threads; e++) {
            const int further = e * (SHAPE::threads / SHAPE::columns), term = begin + further;
            int number, met = -1, channel = 0;
            if (term < last) {
                channel = of_taps.quotient(term, &number);
                met = conv_met(pixel, taps()[number], p.size);
            }
            gemm_copy(to + further * SHAPE::b_row, met < 0 ? image : image + channel * pixels + met, met >= 0);
        }
    }
    __device__ void write(const float values[SHAPE::lines][8], int, int down, int across) const {
        const int classes = conv_classes(p), group = blockIdx.z / classes;
        const conv_class of_outputs(p, blockIdx.z % classes);
        const conv_numbers numbers(p);
        const int64_t outputs = sbd_volume(p.out_size), channel = (int64_t)group * p.rows + first_m() + down;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int number = (int)blockIdx.x * SHAPE::columns + across + j / 4 * 16 + j % 4;
            int at[3];
            const int sample = numbers.of(number, at);
            bool is_there = sample < (int)p.samples;
            int64_t place = 0;
            for (int d = 0; d < 3; d++) {
                const int64_t position = p.is_transposed ? at[d] * p.stride[d] + of_outputs.remainder[d] : at[d];
                is_there = is_there && position < p.out_size[d];
                place = place * p.out_size[d] + position;
            }
            if (!is_there)
                continue;
            float *out = (float *)p.out + (sample * p.groups * p.rows + channel) * outputs + place;
#pragma unroll
            for (int i = 0; i < SHAPE::lines; i++) {
                const int row = i % 4 + i / 4 * 32;
                if (first_m() + down + row < (int)p.rows)
                    out[row * outputs] =
                        p.bias ? __fadd_rn(values[i][j], ((const float *)p.bias)[channel + row]) : values[i][j];
            }
        }
    }
};

template <class SHAPE> SBP_FUNCTION void conv_tile_of(const sbp_conv_parameters &p) {
    const int classes = conv_classes(p), group = blockIdx.z / classes;
    const int depth = (int)p.depth, terms = depth * (int)sbd_volume(p.kernel);
    const int blocks = (terms + GEMM_K_BLOCK - 1) / GEMM_K_BLOCK;
    const float *weight = (const float *)p.weight + group * p.rows * terms;
    conv_class of_outputs(p, blockIdx.z % classes);
    if (of_outputs.met < of_outputs.taps && conv_has_endless<SHAPE>(p, weight, conv_problem<SHAPE>::first_m()))
        of_outputs.take_all(p);
    conv_tap *taps = conv_problem<SHAPE>::taps();
    int *starts = (int *)(taps + of_outputs.taps);
    for (int i = threadIdx.x; i < of_outputs.met; i += SHAPE::threads)
        taps[i] = of_outputs.tap(p, i);
    for (int i = threadIdx.x; i <= blocks; i += SHAPE::threads)
        starts[i] = of_outputs.before(i < blocks ? i * GEMM_K_BLOCK : terms, p.kernel);
    __syncthreads();
    const int in_order = of_outputs.taps, most = GEMM_K_BLOCK / in_order * of_outputs.met;
    const int rest = GEMM_K_BLOCK % in_order, of_rest = rest < of_outputs.met ? rest : of_outputs.met;
    int log_steps = 0;
    while (SHAPE::depth << log_steps < most + of_rest)
        log_steps++;
    const conv_numbers numbers(p);
    int pixel[3];
    const int sample = numbers.of((int)blockIdx.x * SHAPE::columns + (int)threadIdx.x % SHAPE::columns, pixel);
    const bool is_there = sample < (int)p.samples;
    for (int d = 0; d < 3; d++)
        pixel[d] = p.is_transposed ? pixel[d] : pixel[d] * (int)p.stride[d];
    const int64_t of_sample = ((is_there ? sample : 0) * p.groups + group) * p.depth * sbd_volume(p.size);
    const conv_problem<SHAPE> problem = {
        p, weight, (const float *)p.image + of_sample, starts,
        conv_divider(of_outputs.met ? of_outputs.met : 1), of_outputs.met ? blocks : 0, log_steps,
        {is_there ? pixel[0] : CONV_NOWHERE, pixel[1], pixel[2]},
        p.is_transposed ? of_outputs.taps : terms, p.is_transposed ? (int)p.rows * of_outputs.taps : of_outputs.taps};
    gemm_tile<SHAPE>(problem);
}

/* A tile of the gradient of a weight. */
template <class SHAPE> struct conv_weight_problem : gemm_terms<SHAPE::depth> {
    const sbd_conv_weight_parameters &p;
    const conv_tap *taps; /* in shared memory: of each column of the tile */
    conv_divider of_sample;
    conv_positions positions;
    int group, first_m, first_n, columns, outputs;

    __device__ void fill_rows(float *panel, int step) const {
        int output;
        const int k = this->k_of(step) + (int)threadIdx.x % SHAPE::depth, line = threadIdx.x / SHAPE::depth;
        const int64_t sample = of_sample.quotient(k, &output);
        const float *gradient = (const float *)p.gradient;
        const float *from = gradient + ((sample * p.groups + group) * p.rows + first_m + line) * outputs + output;
        float *to = panel + threadIdx.x % SHAPE::depth * SHAPE::a_row + line;
#pragma unroll
        for (int e = 0; e < SHAPE::rows * SHAPE::depth / SHAPE::threads; e++) {
            const int down = e * (SHAPE::threads / SHAPE::depth);
            const bool is_inside = k < this->k_end && first_m + line + down < (int)p.rows;
            gemm_copy(to + down, is_inside ? from + (int64_t)down * outputs : gradient, is_inside);
        }
    }
    __device__ void fill_columns(float *panel, int step) const {
        int output, pixel[3];
        const int k = this->k_of(step) + (int)threadIdx.x % SHAPE::depth, line = threadIdx.x / SHAPE::depth;
        const int64_t sample = of_sample.quotient(k, &output);
        positions.of(output, pixel);
#pragma unroll
        for (int d = 0; d < 3; d++)
            pixel[d] *= (int)p.stride[d];
        const float *image = (const float *)p.image;
        const float *from = image + (sample * p.groups + group) * p.depth * sbd_volume(p.size);
        float *to = panel + threadIdx.x % SHAPE::depth * SHAPE::b_row + line;
#pragma unroll
        for (int e = 0; e < SHAPE::columns * SHAPE::depth / SHAPE::threads; e++) {
            const int across = e * (SHAPE::threads / SHAPE::depth);
            const conv_tap tap = taps[line + across];
            const int met = k < this->k_end ? conv_met(pixel, tap, p.size) : -1;
            gemm_copy(to + across, met < 0 ? image : from + tap.place + met, met >= 0);
        }
    }
    __device__ void write(const float values[SHAPE::lines][8], int step, int down, int across) const {
        const int64_t block = SHAPE::totals == TOTALS_APART ? this->k_of(step) / GEMM_K_BLOCK - p.first_block : 0;
        const int64_t each = SHAPE::totals == TOTALS_APART ? p.blocks : 1;
        float *out = (float *)p.chains + (group * each + block) * p.rows * columns;
        gemm_write<SHAPE>(values, out, first_m + down, first_n + across, (int)p.rows, columns);
    }
};

template <class SHAPE> SBP_FUNCTION void conv_weight_of(const sbd_conv_weight_parameters &p) {
    GEMM_SHARED(shared);
    const int taps = (int)sbd_volume(p.kernel), pixels = (int)sbd_volume(p.size), outputs = (int)sbd_volume(p.out_size);
    const int columns = (int)p.depth * taps, shares = (int)((p.blocks + p.blocks_each - 1) / p.blocks_each);
    const int first_m = blockIdx.y * SHAPE::rows, first_n = blockIdx.x * SHAPE::columns;
    conv_tap *of_columns = (conv_tap *)(shared + SHAPE::shared_floats);
    for (int i = threadIdx.x; i < SHAPE::columns; i += SHAPE::threads) {
        const int column = first_n + i;
        const sbd_place tap = sbd_place_of(column % taps, p.kernel);
        conv_tap found = {{0, 0, 0}, column / taps * pixels};
        for (int d = 0; d < 3; d++)
            found.at[d] = (int)(tap.at[d] * p.dilation[d] - p.padding[d]);
        if (column >= columns)
            found.at[0] = CONV_NOWHERE;
        of_columns[i] = found;
    }
    __syncthreads();
    const int64_t first = p.first_block + blockIdx.z % shares * p.blocks_each, last = p.first_block + p.blocks;
    const int64_t end = first + p.blocks_each < last ? first + p.blocks_each : last, terms = p.samples * outputs;
    const conv_weight_problem<SHAPE> problem = {
        {(int)(first * GEMM_K_BLOCK), (int)(end * GEMM_K_BLOCK < terms ? end * GEMM_K_BLOCK : terms)},
        p, of_columns, conv_divider(outputs), conv_positions(p.out_size), (int)blockIdx.z / shares, first_m, first_n,
        columns, outputs};
    gemm_tile<SHAPE>(problem);
}

#define CONV_KERNEL(name, rows) CONV_KERNEL_OF(name, rows)
#define CONV_KERNEL_OF(name, rows) name##_##rows
#define CONV_HOST(name) HOST_KERNEL(name)

/* Dynamic shared memory: shared_bytes of the shape, 16 bytes for each tap, 4 for each block of k and 4 more. */
extern "C" __global__ void __launch_bounds__(conv_shape::threads, CONV_MIN_BLOCKS)
    CONV_KERNEL(conv_tile, CONV_ROWS)(const sbp_conv_parameters p) {
    conv_tile_of<conv_shape>(p);
}
CONV_HOST(CONV_KERNEL(conv_tile, CONV_ROWS))

/* Dynamic shared memory: shared_bytes of the shape, and 16 bytes for each column. */
extern "C" __global__ void __launch_bounds__(conv_weight_shape::threads, CONV_MIN_BLOCKS)
    CONV_KERNEL(conv_weight_tile, CONV_ROWS)(const sbd_conv_weight_parameters p) {
    conv_weight_of<conv_weight_shape>(p);
}
CONV_HOST(CONV_KERNEL(conv_weight_tile, CONV_ROWS))

extern "C" __global__ void __launch_bounds__(conv_chains_shape::threads, CONV_MIN_BLOCKS)
    CONV_KERNEL(conv_weight_chains, CONV_ROWS)(const sbd_conv_weight_parameters p) {
    conv_weight_of<conv_chains_shape>(p);
}
CONV_HOST(CONV_KERNEL(conv_weight_chains, CONV_ROWS))
