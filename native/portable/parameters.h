/* The parameters of each kernel, by name: one struct for each, sbp_NAME_parameters, and its entry point
 *     int64_t samebits_portable_NAME(const sbp_NAME_parameters *parameters)
 * which returns 0, or SBP_NO_MEMORY with its output undefined. src/samebits/portable/backends/parameters.py declares
 * the same fields; samebits_portable_parameters() says what they are here, and the two are compared when the library is
 * loaded. No vector types and no headers but stdint.h: a build for another device can share this.
 *
 * Every field is a number of 64 bits or several of them, so that a struct is filled slot by slot:
 *     whole       int64_t: a size, a stride in elements, a flag, the number of a function
 *     real        double
 *     in, out     the address of the first element; NULL where there is none
 *     three_X     three of them; four_X four
 *     extents     for each axis before it: its size; after those of all axes the strides of a, then the strides of b
 *     steps       an sbp_step_tensor for each tensor
 * The last two are as long as the field before them says.
 */
#ifndef SAMEBITS_PORTABLE_PARAMETERS_H
#define SAMEBITS_PORTABLE_PARAMETERS_H

#include <stdint.h>

#if defined(_WIN32)
#define SBP_API __declspec(dllexport)
#else
#define SBP_API __attribute__((visibility("default")))
#endif

#define SBP_NO_MEMORY (-1)

#define SBP_FIELDS_sqrt(X) X(whole, is_f64) X(in, x) X(out, out) X(whole, numel)

/* `out` is x or other memory. */
#define SBP_FIELDS_elementwise_unary(X) X(whole, function) X(whole, is_f64) X(in, x) X(out, out) X(whole, numel)

/* `out` is other memory. */
#define SBP_FIELDS_elementwise_binary(X)                                                                              \
    X(whole, function) X(whole, is_f64) X(in, x) X(in, y) X(out, out) X(whole, numel)

/* `numel` complex numbers each, whose parts are next to each other; `out` is other memory. */
#define SBP_FIELDS_pairs(X)                                                                                           \
    X(whole, function) X(whole, is_f64) X(in, x) X(in, y) X(out, out) X(whole, numel)

/* `is_single`: whether an input is one value for all outputs. Inputs that a function does not use are any of those that
 * it does. The output may be exactly one of the inputs. */
#define SBP_FIELDS_activation(X)                                                                                      \
    X(whole, function) X(whole, is_f64) X(whole, numel) X(out, out)                                                   \
    X(three_in, inputs) X(three_whole, is_single) X(four_real, numbers)

/* Both contiguous: (outer, n, inner). */
#define SBP_FIELDS_scan(X)                                                                                            \
    X(whole, is_product) X(whole, is_f64) X(in, x) X(out, out) X(whole, outer) X(whole, n) X(whole, inner)

#define SBP_FIELDS_softmax(X)                                                                                         \
    X(whole, kind) X(whole, is_f64) X(in, x) X(in, gradient) X(out, out) X(whole, rows) X(whole, n)

/* The middle axis of (outer, n, inner) is transformed. `n`: of the real numbers, where there are some. `radices`: of each
 * stage (int64). `table`: for each stage the cosine and the sine of j / r of a turn, if r is odd, then of j p / (r m) for
 * each p and each j from 1 on, if m is not 1. `first`: the latter of the first stage, by j, cosines then sines, then by p.
 * `turns`: cosine and sine of k / n for k up to n / 2. */
#define SBP_FIELDS_fft(X)                                                                                             \
    X(whole, kind) X(whole, is_f64) X(whole, is_inverse) X(whole, outer) X(whole, n) X(whole, inner)                  \
    X(in, x) X(out, out) X(whole, stages) X(in, radices) X(in, table) X(in, first) X(in, turns) X(real, scale)

/* Strides are those of rows, of columns and of the batch. `added` may be missing. */
#define SBP_FIELDS_gemm(X)                                                                                            \
    X(whole, is_f64) X(whole, batches) X(whole, m) X(whole, n) X(whole, k)                                            \
    X(in, a) X(three_whole, a_strides) X(in, b) X(three_whole, b_strides)                                             \
    X(out, out) X(three_whole, out_strides) X(in, added) X(three_whole, added_strides) X(real, alpha) X(real, beta)

/* `x` and `out`: (batch, n, n); `out` is zeros at first. `info` (int64), 0 at first, becomes 1 + the first column that
 * fails. */
#define SBP_FIELDS_cholesky(X) X(whole, is_f64) X(whole, batch) X(whole, n) X(in, x) X(out, out) X(out, info)

/* `a`, (batch, rows, columns), becomes its factors. `pivots` and `info` are int64; `info` is 0 at first. */
#define SBP_FIELDS_lu(X)                                                                                              \
    X(whole, is_f64) X(whole, is_pivoted) X(whole, batch) X(whole, rows) X(whole, columns) X(out, a) X(out, pivots)   \
    X(out, info)

/* `x`, (batch, n, columns), becomes the solution. Strides are those of rows, of columns and of the batch. */
#define SBP_FIELDS_triangular(X)                                                                                      \
    X(whole, is_f64) X(whole, is_upper) X(whole, is_unit) X(whole, batch) X(whole, n) X(whole, columns) X(in, a)      \
    X(three_whole, a_strides) X(out, x)

/* `work`, (batch, rows, columns), becomes its upper triangle. `v`: (batch, reflections, rows), of which the values
 * before the diagonal are not written. `tau`: (batch, reflections). */
#define SBP_FIELDS_householder(X)                                                                                     \
    X(whole, is_f64) X(whole, batch) X(whole, rows) X(whole, columns) X(out, work) X(out, v) X(out, tau)

/* Multiplies `q`, (batch, rows, columns), the unit matrix at first, by them in `steps`. */
#define SBP_FIELDS_reflections(X)                                                                                     \
    X(whole, is_f64) X(whole, batch) X(whole, rows) X(whole, columns) X(whole, steps) X(in, v) X(in, tau) X(out, q)

/* `rows`, (batch, n, length), are rotated in place; the first `width` of each are the matrix. `limits`: one for each
 * symmetric matrix, NULL for others. `done` (int64) becomes whether `most_sweeps` sweeps were enough for it. */
#define SBP_FIELDS_jacobi(X)                                                                                          \
    X(whole, batch) X(whole, n) X(whole, width) X(whole, length) X(out, rows) X(in, limits) X(real, tolerance)        \
    X(whole, most_sweeps) X(out, done)

/* `reduced`: a bit for each reduced axis. `out` and `mean` are contiguous over the other axes. Nothing is empty. The
 * strides of b are any where there is no b. */
#define SBP_FIELDS_reduce(X)                                                                                          \
    X(whole, kind) X(whole, is_f64) X(in, a) X(in, b) X(in, mean) X(out, out) X(whole, reduced)                       \
    X(whole, axes) X(extents, extents)

/* All contiguous: x and gates (steps, batch, 4 size); out, cells and tanh_cells (steps, batch, size); the weight
 * (4 size, size); first states (batch, size). `is_reversed`: from the last step to the first. `keeps`: else gates, cells
 * and tanh_cells are of one step, which is the last one at the end. `bias` may be missing. */
#define SBP_FIELDS_lstm(X)                                                                                            \
    X(whole, is_f64) X(whole, is_reversed) X(whole, keeps) X(whole, steps) X(whole, batch) X(whole, size)             \
    X(in, x) X(in, weight) X(in, bias) X(in, first_out) X(in, first_cell)                                             \
    X(out, out) X(out, gates) X(out, cells) X(out, tanh_cells)

/* From what `lstm` read and kept; its results are computed anew. `course`: gates, cells and tanh_cells. `slopes`: of out, of
 * the last output, of the last cell state; at least one is there. `of_out_strides`: of steps and samples, and 1. The
 * gradients of weight and bias may be missing. `of_first_out` is memory that is needed in any case, but holds a gradient
 * at the end only if that is wanted. */
#define SBP_FIELDS_lstm_gradient(X)                                                                                   \
    X(whole, is_f64) X(whole, is_reversed) X(whole, steps) X(whole, batch) X(whole, size) X(whole, wants_first_out)   \
    X(in, weight) X(in, first_out) X(in, first_cell) X(three_in, course) X(three_in, slopes)                          \
    X(three_whole, of_out_strides)                                                                                    \
    X(out, of_x) X(out, of_weight) X(out, of_bias) X(out, of_first_out) X(out, of_first_cell)

/* Strides are those of n, m and c. `bad` (int64) becomes whether an index is no row. `skip`: the index -1 is left out. */
#define SBP_FIELDS_accumulate(X)                                                                                      \
    X(whole, is_f64) X(whole, kind) X(out, out) X(in, src) X(in, indices) X(whole, batch) X(whole, rows)                \
    X(whole, columns) X(whole, m) X(three_whole, src_strides) X(three_whole, index_strides) X(out, bad) X(whole, skip)

/* `all_heads`: of queries in all samples; `groups`: heads of queries that share one of keys. Strides are those of batch, head
 * and position, of the mask also those of keys. Backward, `out` is its gradient. */
#define SBP_FIELDS_attention(X)                                                                                       \
    X(whole, is_f64) X(whole, is_backward) X(whole, all_heads) X(whole, heads) X(whole, groups) X(whole, queries)         \
    X(whole, keys) X(whole, size) X(whole, value_size) X(whole, is_causal)                                            \
    X(in, query) X(three_whole, query_strides) X(in, key) X(three_whole, key_strides)                                 \
    X(in, value) X(three_whole, value_strides) X(out, out) X(three_whole, out_strides)                                \
    X(in, mask) X(four_whole, mask_strides) X(out, log) X(out, of_query) X(out, of_key) X(out, of_value)

/* `depth` and `rows`: channels in a group of the image and of the output. `bias` may be missing. */
#define SBP_FIELDS_conv(X)                                                                                            \
    X(whole, is_f64) X(whole, is_transposed) X(in, image) X(in, weight) X(in, bias) X(out, out)                       \
    X(whole, samples) X(whole, groups) X(whole, depth) X(whole, rows) X(three_whole, size)                            \
    X(three_whole, out_size) X(three_whole, kernel) X(three_whole, stride) X(three_whole, padding)                    \
    X(three_whole, dilation)

/* `gradient` is that of the output. */
#define SBP_FIELDS_conv_weight(X)                                                                                     \
    X(whole, is_f64) X(in, image) X(in, gradient) X(out, of_weight)                                                   \
    X(whole, samples) X(whole, groups) X(whole, depth) X(whole, rows) X(three_whole, size)                            \
    X(three_whole, out_size) X(three_whole, kernel) X(three_whole, stride) X(three_whole, padding)                    \
    X(three_whole, dilation)

/* Backward, `out` is the gradient of x, and the mean and rstd are read. `weight` and `bias` may be missing. */
#define SBP_FIELDS_layer_norm(X)                                                                                      \
    X(whole, is_f64) X(whole, is_backward) X(in, x) X(in, gradient) X(in, weight) X(in, bias) X(out, out)             \
    X(out, mean) X(out, rstd) X(whole, rows) X(whole, n) X(real, eps)

#define SBP_FIELDS_layer_norm_weights(X)                                                                              \
    X(whole, is_f64) X(in, x) X(in, gradient) X(in, mean) X(in, rstd) X(out, of_weight) X(out, of_bias)               \
    X(whole, rows) X(whole, n)

/* `each`: channels of a group. `weight` and `bias` may be missing. */
#define SBP_FIELDS_group_norm(X)                                                                                      \
    X(whole, is_f64) X(in, x) X(in, weight) X(in, bias) X(out, out) X(out, mean) X(out, rstd)                         \
    X(whole, samples) X(whole, groups) X(whole, each) X(whole, inner) X(real, eps)

#define SBP_FIELDS_group_norm_gradient(X)                                                                             \
    X(whole, is_f64) X(in, x) X(in, gradient) X(in, weight) X(in, mean) X(in, rstd) X(out, out)                       \
    X(out, of_weight) X(out, of_bias) X(whole, samples) X(whole, groups) X(whole, each) X(whole, inner)

/* fma(x - mean, scale, shift) */
#define SBP_FIELDS_channel_norm(X)                                                                                    \
    X(whole, is_f64) X(in, x) X(in, mean) X(in, scale) X(in, shift) X(out, out)                                       \
    X(whole, outer) X(whole, channels) X(whole, inner)

/* `rest` is 1 - momentum. `weight` and what is running may be missing. */
#define SBP_FIELDS_batch_norm(X)                                                                                      \
    X(whole, is_f64) X(in, x) X(in, weight) X(in, bias) X(out, running_mean) X(out, running_var) X(out, out)          \
    X(out, mean) X(out, rstd) X(whole, outer) X(whole, channels) X(whole, inner)                                      \
    X(real, eps) X(real, momentum) X(real, rest)

/* `weight` and `out` may be missing. */
#define SBP_FIELDS_batch_norm_gradient(X)                                                                             \
    X(whole, is_f64) X(whole, training) X(in, x) X(in, gradient) X(in, weight) X(in, mean) X(in, rstd)                \
    X(out, out) X(out, of_weight) X(out, of_bias) X(whole, outer) X(whole, channels) X(whole, inner)

/* One tensor of a step: its momentum buffer or first moment, its second one and the highest of these, where used. */
typedef struct {
    int64_t count;
    void *param;
    const void *grad;
    void *first, *second, *highest;
    double minus_step, root;
} sbp_step_tensor;

#define SBP_FIELDS_optimizer(X)                                                                                       \
    X(whole, is_f64) X(whole, is_sgd) X(whole, flags) X(real, shrink) X(real, decay) X(real, weight) X(real, keep)    \
    X(real, gain) X(real, eps) X(whole, tensors) X(steps, each)

/* `first`: the block of the first word; `stream` and `lane`: the upper words of the counter. */
#define SBP_FIELDS_random(X)                                                                                          \
    X(whole, kind) X(out, out) X(whole, numel) X(whole, key) X(whole, first) X(whole, stream) X(whole, lane)          \
    X(whole, bits) X(whole, low) X(in, source) X(real, a) X(real, b)

/* `x`: `rows` of `width` pixels, each of which is repeated `across` times, and each row `down` times. */
#define SBP_FIELDS_repeat(X)                                                                                          \
    X(whole, is_f64) X(in, x) X(out, out) X(whole, rows) X(whole, width) X(whole, across) X(whole, down)

/* For each of three dimensions the first position of every window, the one after its last, and its count (int64); there is
 * at least one. Backward, `wide` need not be zeros. Each `channels` planes of it begin `sample_step` after the ones before. */
#define SBP_FIELDS_window(X)                                                                                          \
    X(whole, is_f64) X(whole, is_backward) X(out, wide) X(out, narrow) X(whole, planes) X(whole, channels)            \
    X(whole, sample_step) X(whole, divisor)                                                                           \
    X(three_whole, size) X(three_whole, outputs) X(three_in, first) X(three_in, end) X(three_in, counts)

#define SBP_KERNELS(X)                                                                                                \
    X(accumulate) X(activation) X(attention) X(batch_norm) X(batch_norm_gradient) X(channel_norm) X(cholesky) X(conv) \
    X(conv_weight) X(elementwise_binary) X(elementwise_unary) X(fft) X(gemm) X(group_norm) X(group_norm_gradient)     \
    X(householder) X(jacobi) X(layer_norm) X(layer_norm_weights) X(lstm) X(lstm_gradient) X(lu) X(optimizer)          \
    X(pairs) X(random) X(reduce) X(reflections) X(repeat) X(scan) X(softmax) X(sqrt) X(triangular) X(window)

#define SBP_MEMBER_whole(name) int64_t name;
#define SBP_MEMBER_real(name) double name;
#define SBP_MEMBER_in(name) const void *name;
#define SBP_MEMBER_out(name) void *name;
#define SBP_MEMBER_three_whole(name) int64_t name[3];
#define SBP_MEMBER_three_in(name) const void *name[3];
#define SBP_MEMBER_four_whole(name) int64_t name[4];
#define SBP_MEMBER_four_real(name) double name[4];
/* A kernel of a GPU gets a struct by value: SBP_ON_DEVICE says how long a list of any length is at most there. */
#ifdef SBP_ON_DEVICE
#define SBP_MEMBER_extents(name) int64_t name[3 * SBP_ON_DEVICE];
#define SBP_MEMBER_steps(name) sbp_step_tensor name[SBP_ON_DEVICE];
#else
#define SBP_MEMBER_extents(name) int64_t name[];
#define SBP_MEMBER_steps(name) sbp_step_tensor name[];
#endif
#define SBP_MEMBER(type, name) SBP_MEMBER_##type(name)

#define SBP_DECLARE_KERNEL(name)                                                                                      \
    typedef struct {                                                                                                  \
        SBP_FIELDS_##name(SBP_MEMBER)                                                                                 \
    } sbp_##name##_parameters;
SBP_KERNELS(SBP_DECLARE_KERNEL)
#undef SBP_DECLARE_KERNEL

#ifndef SBP_ON_DEVICE
#define SBP_DECLARE_KERNEL(name) SBP_API int64_t samebits_portable_##name(const sbp_##name##_parameters *p);
SBP_KERNELS(SBP_DECLARE_KERNEL)
#undef SBP_DECLARE_KERNEL
#endif

#endif
